"""Open, answer, decide and edit cards. Every function runs inside the caller's tenant scope.

A card that breaks the card contract is never opened. A card is decided once, by a person who may approve, and only an
approved decision about a kind that binds issues a token. An edit never approves anything: it voids the card and opens
another, with a new payload, a new hash and its own approval. Lock order: card, token, audit head (spec 0.5.3, 0.5.4,
5.2.4, 5.11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.approvals import locks, queries, registry, rules, signals
from apps.approvals.cards import answers, kinds, risk, validation
from apps.approvals.cards.lifecycle import record_card_event, require_approver, require_open, settle_card
from apps.approvals.cards.schemas import (
    AnswerDetails,
    AnswerRefused,
    Binding,
    CardSubject,
    CardText,
    ClientSignature,
    LinkSignature,
)
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, DeclineReason, Risk
from apps.approvals.models import Answer, ApprovalToken, Card, Decision
from apps.approvals.passkeys import services as passkeys
from apps.approvals.tokens import payloads
from apps.approvals.tokens.services import issue_token
from apps.audit.enums import AuditEvent
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.tenants.models import User
from kernel import fault_points
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MAX_FREETEXT = 2000


def open_card(
    kind: CardKind,
    *,
    subject: CardSubject,
    binding: Binding,
    text: CardText,
    body: Mapping[str, object] | None = None,
    seconds: int | None = None,
    until: datetime | None = None,
    supersedes: Card | None = None,
) -> Card:
    """Open a card. An approval of it will bind the hash of the payload; the risk is computed here (spec 0.5.2).

    `body` is what the kind shows beside the payload. The card stays open until `until`, or for `seconds`, or for as
    long as the pace of its kind says. Raises what `validation.validate_card` raises, and `ImproperlyConfigured` for a
    card that no room has registered handlers for (`registry.on_card`).
    """
    text = replace(text, intent=validation.single_line(text.intent))
    shown, payload = dict(body or {}), binding.payload
    payload_hash = payloads.payload_hash(payload)
    valid_kind = validation.validate_card(kind, binding.scope, payload, shown, text)
    # Looked up before the card exists: one without a handler would be decided without effect.
    registry.handlers_of(kind, subject.kind)
    opened = now()
    if until is None:
        until = opened + timedelta(seconds=seconds or queries.card_lifetime(valid_kind.pace, subject.deployment_id))
    card: Card = Card.objects.create(
        kind=kind,
        risk=risk.card_risk(
            binding.scope,
            reversible=binding.reversible,
            destroys=binding.destroys,
            at_least=binding.declared_risk,
            untrusted_target=binding.untrusted_target,
            base=valid_kind.base_risk(binding.payload),
        ),
        intent=text.intent,
        rationale=text.rationale,
        consequence=validation.button_labels(valid_kind, payload, text.consequence),
        affected=text.affected,
        facts=[{name: value for name, value in asdict(fact).items() if value is not None} for fact in text.facts],
        details=dict(text.details),
        body=shown,
        payload=dict(payload),
        payload_hash=payload_hash,
        reads=[dict(record) for record in binding.reads],
        scope=binding.scope,
        max_executions=binding.max_executions,
        token_seconds=binding.token_seconds or settings.APPROVAL_TOKEN_SECONDS,
        subject_kind=subject.kind,
        subject_id=subject.id,
        deployment_id=subject.deployment_id,
        session_id=subject.session_id,
        requested_by=subject.requested_by,
        supersedes=supersedes,
        created_at=opened,
        expires_at=until,
    )
    bus.enqueue(Kind.CARD_ALERT, scope_id=card.pk)
    bus.schedule(Kind.CARD_EXPIRY, scope_id=card.pk, due_at=card.expires_at)
    record_card_event(AuditEvent.CARD_OPENED, card, kind=card.kind, risk=card.risk, scope=card.scope)
    signals.card_changed(card)
    return card


def answer_card(
    card_id: UUID,
    *,
    user: User,
    choice: str,
    face: str,
    details: AnswerDetails | None = None,
    step_up: str = "",
    signature: ClientSignature | LinkSignature | None = None,
) -> Decision | Card | AnswerRefused | None:
    """Answer a card with one of its own choices (`Kind.choices_on`). Called by the console, messengers and the API.

    `face` is the hash of what the person's page showed (`queries.face_hash`); an answer from a page that showed
    anything else decides nothing. `signature` is that of the program that answers on the person's behalf, or of the
    passkey on the page of a decision link. Returns

    - the decision, which stores as `said` the choice and, where the card takes it or is declined, `freetext`, and the
      `reason` why it is declined;
    - the card that replaced this one, because items were left out, the wording was changed, or the records shown on
      it have changed;
    - None while policy wants more approvals;
    - `AnswerRefused` when the person's passkey was rejected.

    Raises `SilasError`: `card_changed` 409, `choice_unknown`, `selection_unfit`, `ticks_unfit` 409, `text_missing`,
    `edit_unfit`, `freetext_too_long`, `freetext_not_wanted`, and what `decide_card` and `edit_card` raise.
    """
    card, details = queries.get_card(card_id), details or AnswerDetails()
    chosen = kinds.get_choice(card.kind, card.payload, choice)
    # A settled card is not compared: its own refusal, which follows, says more than that its page is old.
    if card.is_open:
        queries.require_unchanged(card, face)
    edit = card.of_kind.edit_for(card, chosen, details)
    if edit is not None:
        return edit_card(
            card_id,
            user=user,
            payload=edit.payload,
            text=edit.text,
            body=edit.body,
            reads=edit.reads,
            signature=signature,
        )
    if chosen.verdict == ApprovalVerdict.APPROVED:
        card.of_kind.check_approval(card, details)
    said = answer_words(card, chosen, details.freetext, details.reason)
    return decide_card(
        card_id, user=user, verdict=chosen.verdict, said=said, step_up=step_up, face=face, signature=signature
    )


def answer_words(
    card: Card, choice: kinds.Choice, freetext: str, reason: DeclineReason | None = None
) -> dict[str, str]:
    """Return what an answer says: the choice, and where the card is declined the reason and a note for colleagues.

    Raises `SilasError`: `freetext_too_long`, `freetext_not_wanted`.
    """
    text, declines = freetext.strip(), choice.verdict == ApprovalVerdict.DECLINED
    if reason is not None and not declines:
        raise SilasError(ErrorCode.FREETEXT_NOT_WANTED, gettext("Only declining takes a reason."), status=400)
    said = {"choice": choice.value} | ({"reason": reason.value} if reason else {})
    if not text:
        return said
    if not declines and not card.of_kind.takes_freetext(card.payload):
        raise SilasError(ErrorCode.FREETEXT_NOT_WANTED, gettext("This card doesn't accept free text."), status=400)
    if len(text) > MAX_FREETEXT:
        raise SilasError(
            ErrorCode.FREETEXT_TOO_LONG,
            gettext("Use up to {max_freetext} characters.").format(max_freetext=MAX_FREETEXT),
        )
    return {**said, "freetext": text}


def decide_card(
    card_id: UUID,
    *,
    user: User,
    verdict: ApprovalVerdict,
    conditions: Mapping[str, object] | None = None,
    said: Mapping[str, object] | None = None,
    step_up: str = "",
    face: str | None = None,
    signature: ClientSignature | LinkSignature | None = None,
) -> Decision | Card | AnswerRefused | None:
    """Take one person's answer to a card. One rejection decides it; an approval does when policy wants no more.

    The approval that suffices issues the token and sends `card_decided` in the same transaction. `said` is the choice
    and what came with it (`Kind.choices_on`), `step_up` the JSON of the passkey's assertion where one is needed,
    `face` what the person's page showed (`queries.face_hash`), None for a caller without a page. Returns None while
    policy wants more approvals. Where the records shown on the card have changed, returns the card that shows them
    as they are now (approvals of the old one do not count), or `AnswerRefused` if none can take its place.
    `AnswerRefused` is also the answer to a rejected passkey; the card stays open and the caller should commit.

    Raises `SilasError`: `not_found` 404, `card_decided`/`card_expired`/`card_withdrawn`/`card_damaged`/`card_changed`
    409, and what `answers.take_answer` raises.
    """
    require_approver(user)
    card = locks.lock_card(card_id)
    require_open(card)
    # The hash was stored when the card was opened: a payload that was changed in the database since then is not
    # approved.
    _require_undamaged(card)
    if face is not None:
        queries.require_unchanged(card, face)
    if verdict == ApprovalVerdict.APPROVED and card.reads:
        # The records may have changed between the look and the press (time of check, time of use).
        instead = registry.handlers_of(card.kind, card.subject_kind).before_approval(card)
        if instead is not None:
            return instead
    try:
        answer = answers.take_answer(
            card,
            user=user,
            verdict=verdict,
            conditions=conditions or {},
            said=said or {},
            step_up=step_up,
            signature=signature,
        )
    except passkeys.PasskeyRejected as rejection:
        return passkeys.record_refusal(rejection, user=user, subject=passkeys.PasskeySubject.for_card(card))
    program = {"client_key": answer.key_id} if isinstance(signature, ClientSignature) else {}
    if not answers.settles_card(answer):
        record_card_event(AuditEvent.CARD_ANSWERED, card, actor=f"user:{user.pk}", answer=str(answer.pk), **program)
        signals.card_changed(card)
        return None
    return _decide(card, answer, program)


def _decide(card: Card, answer: Answer, program: Mapping[str, str]) -> Decision:
    decision: Decision = Decision.objects.create(
        card=card,
        user=answer.user,
        verdict=answer.verdict,
        conditions=answer.conditions,
        said=answer.said,
        decided_at=answer.answered_at,
    )
    settle_card(card, CardStatus.DECIDED)
    actor = f"user:{answer.user_id}"
    data = {"verdict": decision.verdict, "decision": str(decision.pk), **program}
    if reason := decision.decline_reason:
        data["reason"] = reason.value
    record_card_event(AuditEvent.CARD_DECIDED, card, actor=actor, **data)
    token = _issue_token(card, answer, decision) if decision.verdict == ApprovalVerdict.APPROVED else None
    registry.handlers_of(card.kind, card.subject_kind).decided(card, decision, token)
    signals.card_decided(card, decision, token)
    signals.card_changed(card)
    fault_points.reach("approvals.decided")
    transaction.on_commit(partial(fault_points.reach, "approvals.committed"))
    return decision


def _require_undamaged(card: Card) -> None:
    if payloads.payload_hash(card.payload) != card.payload_hash:
        raise SilasError(ErrorCode.CARD_DAMAGED)


def _issue_token(card: Card, answer: Answer, decision: Decision) -> ApprovalToken | None:
    """Issue the signed approval; None for a card that asks a question and binds nothing."""
    if not card.of_kind.binds:
        return None
    scope = ApprovalScope(card.scope)
    return issue_token(
        payloads.approvable(scope, card.payload),
        decision,
        scope,
        expires_in=timedelta(seconds=card.token_seconds),
        max_executions=card.max_executions,
        conditions={**answers.token_conditions(answer), rules.FACE: queries.face_hash(card)},
    )


def edit_card(
    card_id: UUID,
    *,
    user: User,
    payload: Mapping[str, object],
    text: CardText | None = None,
    body: Mapping[str, object] | None = None,
    declared_risk: Risk = Risk.LOW,
    reads: Sequence[Mapping[str, object]] | None = None,
    signature: ClientSignature | LinkSignature | None = None,
) -> Card:
    """Void a card and open one about the same subject with another `payload`, at no lower a risk.

    What is left out stays as on the old card. Sends `card_edited` (not `card_decided`) in the same transaction. Raises
    `SilasError`: `edit_changes_nothing`, `edit_changes_subject`; 409 when the old card is closed; and what `open_card`
    raises.
    """
    require_approver(user)
    old = locks.lock_card(card_id)
    require_open(old)
    _require_undamaged(old)
    scope, old_risk = ApprovalScope(old.scope), Risk(old.risk)
    edited = payloads.approvable(scope, payload)
    if edited.plan_hash == old.payload_hash:
        raise SilasError(ErrorCode.EDIT_CHANGES_NOTHING)
    # An edit changes how something is done; another subject was not asked for.
    if edited.id != payloads.approvable(scope, old.payload).id:
        raise SilasError(ErrorCode.EDIT_CHANGES_SUBJECT)
    answer = answers.take_answer(
        old,
        user=user,
        verdict=ApprovalVerdict.EDIT_REQUESTED,
        conditions={},
        said={},
        step_up="",
        signature=signature,
    )
    Decision.objects.create(card=old, user=user, verdict=answer.verdict, decided_at=answer.answered_at)
    settle_card(old, CardStatus.DECIDED)
    # A person who rewrites something of high risk has requested it, so by default another person must approve it.
    requested_by = f"user:{user.pk}" if risk.is_at_least(old_risk, Risk.HIGH) else old.requested_by
    new = open_card(
        CardKind(old.kind),
        subject=CardSubject(old.subject_kind, old.subject_id, old.deployment_id, old.session_id, requested_by),
        binding=Binding(
            scope,
            payload,
            reversible=True,  # the old card's risk has counted it already
            declared_risk=risk.max_risk(old_risk, declared_risk),
            max_executions=old.max_executions,
            token_seconds=old.token_seconds,
            reads=old.reads if reads is None else reads,
        ),
        text=text or old.text,
        body=old.body if body is None else body,
        supersedes=old,
    )
    record_card_event(AuditEvent.CARD_EDITED, old, actor=f"user:{user.pk}", successor=str(new.pk))
    registry.handlers_of(old.kind, old.subject_kind).edited(old, new)
    signals.card_edited(old, new)
    signals.card_changed(old)
    return new
