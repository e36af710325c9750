"""Decide cards by buttons that were pressed in a channel.

A press decides what the same member could decide in the console with one tap, by the same service and with the same
signature, and only for the message that their own account was sent: a forwarded card, a stranger, another member and a
card that has changed decide nothing. The person who pressed is told the outcome.
"""

from __future__ import annotations

import logging
import re
from uuid import UUID

from asgiref.sync import async_to_sync
from django.conf import settings

from apps.approvals import queries
from apps.approvals.cards import decision_links
from apps.approvals.cards.lifecycle import record_card_event, require_open
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.cards.services import answer_card
from apps.approvals.models import Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.messengers import ports
from apps.messengers.cards import accounts
from apps.messengers.cards.notices import approvals_left, may_decide_in_place, outcome_text
from apps.messengers.delivery import place_of
from apps.messengers.models import ApproverAccount, CardNotice
from apps.messengers.ports import NotSent, Press
from apps.messengers.queries import channel as channel_of
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, in_language
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
_MINUTE = 60
_VALUE = re.compile(r"([0-9a-f]{32}):(.{1,100})")


def reply(tenant_id: UUID, channel_id: UUID, press: Press) -> None:
    """Carry out a press, and tell the person who pressed the outcome. Opens its own scopes."""
    text = answer(tenant_id, channel_id, press)
    with tenant_scope(tenant_id):
        channel = channel_of(channel_id)
        adapter, place = ports.adapter_of(channel.kind), place_of(channel)
    try:
        async_to_sync(adapter.answer_press)(place, press, text)
    except NotSent as refusal:
        _log.warning("press_not_answered: %s", refusal.code)


def answer(tenant_id: UUID, channel_id: UUID, press: Press) -> str:
    """Carry out a press, and return the message for the person who pressed. Opens its own scopes."""
    most = settings.CHANNEL_LIMITS["sender_messages_a_minute"]
    limit = Limit(f"card_press:{tenant_id}:{channel_id}:{press.account}", most, _MINUTE)
    if isinstance(fixed_window.try_consume([limit], otherwise="card_press_not_counted"), Limit):
        return gettext("Too many attempts. Wait a minute.")
    try:
        with tenant_scope(tenant_id):
            return _decide(channel_id, press)
    except SilasError as refusal:
        with tenant_scope(tenant_id):
            data = {"account": sha256_hex(press.account)[:16], "reason": refusal.code}
            record(AuditEvent.CARD_PRESS_REFUSED, subject=f"channel:{channel_id}", data=data)
        return refusal.message


def _decide(channel_id: UUID, press: Press) -> str:
    account = (
        ApproverAccount.objects.select_related("user", "channel")
        .filter(channel_id=channel_id, account=press.account)
        .first()
    )
    if account is None or not accounts.is_certified(account):
        raise SilasError(ErrorCode.ACCOUNT_NOT_LINKED)
    with in_language(account.user.language):
        notice, choice = _notice(account, press)
        card = queries.get_card(notice.card_id)
        _require_allowed(card, account, choice)
        # What the message showed when it was sent: a card that has changed since then is not decided.
        outcome = answer_card(card.pk, user=account.user, choice=choice, face=notice.face)
        if isinstance(outcome, Decision | None):
            data = {"channel": str(channel_id), "kind": account.channel.kind, "account": str(account.pk)}
            record_card_event(AuditEvent.CARD_ANSWERED_IN_CHANNEL, card, actor=account.user.actor, **data)
        return _told(card.pk, outcome)


def _notice(account: ApproverAccount, press: Press) -> tuple[CardNotice, str]:
    """The message of this very account that was pressed, and the choice."""
    found = _VALUE.fullmatch(press.value)
    own = CardNotice.objects.filter(channel_id=account.channel_id, account=account.account, user=account.user)
    # The message itself counts, not the value of its button, which can be copied into another one.
    notice = own.filter(pk=UUID(found[1]), external_id=press.message_id).first() if found else None
    if found is None or notice is None:
        raise SilasError(ErrorCode.CARD_FORWARDED)
    return notice, found[2]


def _require_allowed(card: Card, account: ApproverAccount, choice: str) -> None:
    """Raises `SilasError` unless a press of this account may answer the card so: what a message showed may be long
    ago."""
    if not account.user.is_active:
        raise SilasError(ErrorCode.APPROVER_REQUIRED)
    require_open(card)
    rule = accounts.policy()
    if rule is None or not may_decide_in_place(card, account, rule, now()):
        raise SilasError(ErrorCode.CONSOLE_REQUIRED)
    if choice not in {each.value for each in decision_links.choices_of(card)}:
        raise SilasError(ErrorCode.CHOICE_UNKNOWN)


def _told(card_id: UUID, outcome: Decision | Card | AnswerRefused | None) -> str:
    card = queries.get_card(card_id)
    match outcome:
        case Decision():
            return outcome_text(card)
        case None:
            quorum = queries.quorum_of(card)
            counted = gettext("Your approval was counted.")
            return f"{counted} {approvals_left(quorum.missing if quorum else 0)}"
        case Card():
            return gettext("The records have changed. Nothing was decided. Review the new request.")
        case AnswerRefused():
            return outcome.message
