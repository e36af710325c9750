"""Send cards to the members who may decide them, where the tenant's policy says so, and keep those messages current.

Each card has one recurring job of the trusted worker: it sends what is due, and updates what was sent when the card got
on. A card undecided at half of its time goes to the next channel, then to the next person; each further step takes half
of what is left. The time stands still while the card waits for the customer. Buttons that decide in place are for low
risk alone; anything else opens the page of a decision link, where the member's passkey decides.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urljoin
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse
from django.utils.timezone import localtime

from apps.approvals import queries
from apps.approvals.cards import decision_links, kinds
from apps.approvals.cards.lifecycle import eligible_approvers
from apps.approvals.enums import ApprovalVerdict, CardStatus, Risk
from apps.approvals.locks import lock_card
from apps.approvals.models import Answer, Card, CardQuestion
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.services import schedule
from apps.messengers import ports
from apps.messengers.cards import accounts
from apps.messengers.delivery import place_of
from apps.messengers.enums import NoticeState
from apps.messengers.models import ApproverAccount, CardNotice, CardPolicy, Channel
from apps.messengers.ports import CardButton, CardLine, CardMessage, NotSent, Place, Sent
from apps.tenants.models import User
from kernel.clock import now
from kernel.language import gettext, in_language, ngettext
from kernel.stored_texts import show_stored
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
MOST_ATTEMPTS, FIRST_WAIT_SECONDS = 5, 5
# Nothing is sent on when less than this is left.
SHORTEST_STEP = timedelta(seconds=10)
_MOST_FACTS = 15
# What every channel shows whole, in characters.
_LONGEST_TITLE, _LONGEST_LINE = 150, 900


@dataclass(frozen=True)
class _Step:
    """One message to send, or to update where `external_id` is set; by email without an adapter."""

    notice_id: UUID
    message: CardMessage
    progress: str
    external_id: str
    adapter: ports.Adapter | None = None
    place: Place | None = None
    address: str = ""


def enqueue_messages(card_id: UUID) -> None:
    """Enqueue the card's messages, where the tenant wants any or once did; in the transaction that changed the card, or
    asked or answered a question about it."""
    if CardPolicy.objects.exists():
        schedule(Kind.CARD_NOTICE, scope_id=card_id, due_at=now())


async def deliver(delivery: Delivery) -> None:
    """Handle one `CARD_NOTICE`, whose bus scope is its card."""
    card_id = UUID(delivery.message.subject)
    for step in await in_scope(delivery.tenant_id, _prepare, card_id):
        outcome = await _carry_out(step)
        await in_scope(delivery.tenant_id, _settle, step, outcome)
    await delivery.reschedule(_next_due, card_id)


@dataclass(frozen=True)
class _Clock:
    """The time that a card has for its decision, without its waits for the customer, which moved its deadline.

    Steps are counted by it, so that a question to the customer neither passes the card on nor takes it back.
    `paused_until` is the end of the current wait, None outside of one.
    """

    whole: timedelta
    left: timedelta
    paused_until: datetime | None

    @property
    def step(self) -> int:
        """How many times the card has been passed on."""
        if self.left < SHORTEST_STEP or self.whole <= self.left:
            return 0
        return max(0, int(math.log2(self.whole / self.left)))

    def due_at(self, left: timedelta, moment: datetime) -> datetime:
        """When `left` of the time will remain."""
        return (self.paused_until or moment) + max(self.left - left, timedelta())


def _clock_of(card: Card, moment: datetime) -> _Clock:
    whole = card.expires_at - card.created_at
    left, paused_until = card.expires_at - moment, None
    for question in queries.questions_about(card):
        end = min(question.ended_at or question.waits_until, question.waits_until)
        whole -= question.waits_until - question.asked_at
        left -= question.waits_until - max(min(end, moment), question.asked_at)
        if end > moment:
            paused_until = end
    # A wait that ended early leaves the card its moved deadline. Until then the last person keeps it: below the
    # shortest step no step would be counted.
    return _Clock(whole, max(left, min(SHORTEST_STEP, card.expires_at - moment)), paused_until)


def step_at(card: Card, moment: datetime) -> int:
    """How many times the card has been passed on at this moment."""
    return _clock_of(card, moment).step


def may_decide_in_place(card: Card, account: ApproverAccount, rule: CardPolicy, moment: datetime) -> bool:
    """Whether a press from this account may decide the card: low risk, allowed by the owner, the account verified
    lately, and no passkey required by the policy of approvals."""
    return (
        card.risk == Risk.LOW
        and rule.decide_in_place
        and accounts.is_recent(account, rule, moment)
        and not queries.approval_requirements(card, account.user).step_up
    )


def _routes(card: Card, rule: CardPolicy) -> Iterator[list[tuple[User, ApproverAccount | None]]]:
    """Who gets the card at each step, and where. None for an account means by email."""
    allowed = {str(user.pk): user for user in eligible_approvers(card) if user.is_active}
    rows = ApproverAccount.objects.select_related("channel", "user").filter(user_id__in=allowed, channel__enabled=True)
    linked = {(str(row.channel_id), str(row.user_id)): row for row in rows if accounts.is_certified(row)}
    groups = [[name] for name in rule.people if name in allowed] if rule.people else [list(allowed)]
    for group in groups:
        for channel in rule.channels:
            found = [(allowed[name], linked.get((channel, name))) for name in group]
            reached = [(user, account) for user, account in found if account or channel == accounts.EMAIL]
            if reached:
                yield reached


def _prepare(card_id: UUID) -> list[_Step]:
    """Make the rows of what is due, and return what is to be sent and updated now."""
    card, rule, moment = queries.get_card(card_id), accounts.policy(), now()
    if rule is not None and card.is_open:
        answered = set(Answer.objects.filter(card=card).values_list("user_id", flat=True))
        for reached in list(_routes(card, rule))[: step_at(card, moment) + 1]:
            _add([pair for pair in reached if pair[0].pk not in answered], card, moment)
    progress = _progress(card)
    notices = CardNotice.objects.select_related("channel__deployment", "user").filter(card=card)
    notices.filter(channel__enabled=False).update(state=NoticeState.FAILED, problem="channel_off")
    if rule is None:
        notices.filter(state=NoticeState.WAITING).update(state=NoticeState.FAILED, problem="turned_off")
    allowed = {user.pk for user in eligible_approvers(card) if user.is_active}
    # Messages to an account that was unlinked meanwhile are no longer updated: it may belong to another person now.
    linked = set(ApproverAccount.objects.values_list("channel_id", "account"))
    for notice in notices.exclude(state=NoticeState.FAILED):
        known = notice.channel_id is None or (notice.channel_id, notice.account) in linked
        if not known or (card.is_open and notice.user_id not in allowed and notice.progress == ""):
            notices.filter(pk=notice.pk).update(state=NoticeState.FAILED, problem="no_longer_allowed")
    steps = []
    for notice in notices.filter(due_at__lte=moment).exclude(progress=progress).exclude(state=NoticeState.FAILED):
        if notice.state == NoticeState.WAITING and not card.is_open:
            continue
        if notice.channel is None:
            if notice.state == NoticeState.WAITING:
                message = _message(card, notice, None, rule)
                steps.append(_Step(notice.pk, message, progress, "", address=notice.user.email))
            continue
        account = ApproverAccount.objects.filter(channel=notice.channel, account=notice.account).first()
        message = _message(card, notice, account, rule)
        adapter, place = ports.adapter_of(notice.channel.kind), _place(notice.channel, notice.account)
        steps.append(_Step(notice.pk, message, progress, notice.external_id, adapter, place))
    return steps


def _add(reached: Sequence[tuple[User, ApproverAccount | None]], card: Card, moment: datetime) -> None:
    face = queries.face_hash(card)
    rows = [
        CardNotice(
            card=card,
            user=user,
            channel=account.channel if account else None,
            account=account.account if account else "",
            face=face,
            due_at=moment,
            created_at=moment,
        )
        for user, account in reached
    ]
    # A member gets a card once in a channel, however often this job runs.
    CardNotice.objects.bulk_create(rows, ignore_conflicts=True)


def _place(channel: Channel, account: str) -> Place:
    place = place_of(channel)
    return Place(place.settings, place.secrets, place.public_id, peer=account, key=account)


async def _carry_out(step: _Step) -> Sent | NotSent:
    try:
        if step.adapter is None or step.place is None:
            await asyncio.to_thread(_mail, step)
            return Sent("")
        if not step.external_id:
            return await step.adapter.send_card(step.place, step.message)
        await step.adapter.update_card(step.place, step.external_id, step.message)
        return Sent(step.external_id)
    except NotSent as refusal:
        return refusal


def _mail(step: _Step) -> None:
    if not settings.EMAIL_HOST:
        raise NotSent("no_mail_server")
    message = step.message
    lines = [line.as_text() for line in message.lines]
    links = [f"{button.label}: {button.url}" for button in message.buttons]
    subject = " ".join(message.title.split())
    try:
        send_mail(subject, "\n\n".join([message.title, *lines, *message.notes, *links]), None, [step.address])
    except Exception as error:
        raise NotSent(type(error).__name__, retry_after=FIRST_WAIT_SECONDS) from error


def _settle(step: _Step, outcome: Sent | NotSent) -> None:
    notice = CardNotice.objects.select_for_update(no_key=True).get(pk=step.notice_id)
    if isinstance(outcome, Sent):
        notice.state, notice.external_id = NoticeState.SENT, outcome.external_id[:255]
        notice.progress, notice.problem, notice.attempts = step.progress, "", 0
    else:
        notice.problem, notice.attempts = outcome.code, notice.attempts + 1
        if outcome.retry_after is None or notice.attempts >= MOST_ATTEMPTS:
            notice.state = NoticeState.FAILED
        else:
            wait = max(outcome.retry_after, FIRST_WAIT_SECONDS * 2 ** (notice.attempts - 1))
            notice.due_at = now() + timedelta(seconds=wait)
    notice.save(update_fields=["state", "external_id", "progress", "problem", "attempts", "due_at"])


def _next_due(card_id: UUID) -> datetime | None:
    """When something is to be sent or updated next."""
    # A change of the card that commits later moves this job again; one before is seen here.
    card = lock_card(card_id)
    # Wait for a transaction that ends a wait: it changes the row, and then moves this job, which is leased now.
    list(CardQuestion.objects.select_for_update(no_key=True).filter(card=card, ended_at=None))
    moment, due = now(), []
    notices = CardNotice.objects.filter(card=card).exclude(progress=_progress(card)).exclude(state=NoticeState.FAILED)
    due += [
        at
        for at, state, channel in notices.values_list("due_at", "state", "channel")
        if (state == NoticeState.WAITING and card.is_open) or (state == NoticeState.SENT and channel)
    ]
    rule = accounts.policy()
    if rule is not None and card.is_open:
        clock = _clock_of(card, moment)
        steps = clock.step + 1
        left = clock.whole / 2**steps
        if left >= SHORTEST_STEP and len(list(_routes(card, rule))) > steps:
            due.append(clock.due_at(left, moment))
    return min(due) if due else None


def _progress(card: Card) -> str:
    return f"{card.state}:{Answer.objects.filter(card=card).count()}"


def _message(card: Card, notice: CardNotice, account: ApproverAccount | None, rule: CardPolicy | None) -> CardMessage:
    with in_language(notice.user.language):
        lines = [CardLine(text=show_stored(card.rationale))] if card.rationale else []
        lines += [
            CardLine(show_stored(fact.label), show_stored(fact.text or ""), fact.before, fact.after)
            for fact in card.text.facts[:_MOST_FACTS]
        ]
        if card.affected:
            lines.append(CardLine(gettext("Affects"), show_stored(card.affected)))
        if not card.is_open:
            return CardMessage(show_stored(card.intent), f"card:{notice.pk}", lines, [outcome_text(card)])
        may_press = (
            account is not None
            and rule is not None
            and may_decide_in_place(card, account, rule, now())
            and _is_short(card, lines)
        )
        buttons = _press_buttons(card, notice) if may_press else _link_buttons(card, notice.user)
        return CardMessage(show_stored(card.intent), f"card:{notice.pk}", lines, _notes(card), buttons)


def _is_short(card: Card, lines: Sequence[CardLine]) -> bool:
    """Whether every channel shows all of it: a card that was cut is not decided in the channel."""
    return (
        len(card.text.facts) <= _MOST_FACTS
        and len(show_stored(card.intent)) <= _LONGEST_TITLE
        and all(len(line.as_text()) <= _LONGEST_LINE for line in lines)
    )


def _notes(card: Card) -> list[str]:
    ends = localtime(card.expires_at).strftime("%Y-%m-%d %H:%M %Z")
    notes = [
        gettext("Risk: {risk}. Expires: {time}").format(risk=card.get_risk_display(), time=ends),
        _provenance(card),
    ]
    quorum = queries.quorum_of(card)
    if quorum is not None and quorum.policy.people > 1:
        given = quorum.policy.people - quorum.missing
        notes.append(gettext("{given} of {people} approvals given").format(given=given, people=quorum.policy.people))
    return notes


def _provenance(card: Card) -> str:
    if card.session_id:
        return gettext("Requested in a conversation. The text above may quote the visitor and isn't verified.")
    if card.requested_by.startswith("user:"):
        return gettext("Requested by a member of your team")
    return gettext("Requested by the assistant")


def outcome_text(card: Card) -> str:
    """What became of a card that is not open any more, in the active language."""
    if card.state == CardStatus.DECIDED:
        decision = card.decision
        words = {
            ApprovalVerdict.APPROVED: gettext("Approved by {name}"),
            ApprovalVerdict.DECLINED: gettext("Declined by {name}"),
        }
        text = words.get(ApprovalVerdict(decision.verdict), gettext("Answered by {name}"))
        return text.format(name=decision.user.display_name)
    if card.state == CardStatus.EXPIRED:
        return gettext("Expired. Nothing was changed.")
    return gettext("Withdrawn. Nothing was changed.")


def _press_buttons(card: Card, notice: CardNotice) -> list[CardButton]:
    labels = {kinds.APPROVE: gettext("Approve"), kinds.DECLINE: gettext("Decline")}
    return [
        CardButton(
            labels.get(choice.value) or show_stored(card.consequence.get(choice.value, choice.value)),
            value=f"{notice.pk.hex}:{choice.value}",
            is_main=number == 0,
        )
        for number, choice in enumerate(decision_links.choices_of(card))
    ]


def _link_buttons(card: Card, user: User) -> list[CardButton]:
    if not settings.PASSKEY_ORIGIN or user.pk not in {each.pk for each in eligible_approvers(card)}:
        return []
    buttons = []
    if queries.has_passkey(user):
        path = decision_links.create_decision_link(card, user).path
        url = urljoin(settings.PASSKEY_ORIGIN, path)
        buttons.append(CardButton(gettext("Decide with your passkey"), url=url, is_main=True))
    url = urljoin(settings.PASSKEY_ORIGIN, reverse("console-card", args=[card.pk]))
    return [*buttons, CardButton(gettext("Open in the console"), url=url)]


def approvals_left(missing: int) -> str:
    text = ngettext("{count} more approval needed.", "{count} more approvals needed.", missing)
    return text.format(count=missing)
