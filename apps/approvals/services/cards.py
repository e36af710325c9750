"""Ask a person, and take the answer: open a card, decide it. Runs inside the caller's tenant scope.

Always holds: a card that does not keep the contract is not opened; one card is decided once, by an approver; only an
approved verdict of a kind that binds mints a token. Lock order: card, token, audit head (spec 0.5.3, 0.5.4, 5.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.approvals import contract, kinds, locks, payloads, queries, risk, rules, signals
from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Risk
from apps.approvals.models import Answer, ApprovalToken, Card, Decision
from apps.approvals.schemas import Fact, Refused
from apps.approvals.services import answers, passkeys
from apps.approvals.services.course import note, require_approver, require_waiting, settle
from apps.approvals.services.tokens import issue_token
from apps.audit.enums import AuditEvent
from apps.bus import services as bus
from apps.bus.enums import Kind
from kernel import fault_points
from kernel.clock import now
from kernel.errors import SilasError


def open_card(
    kind: CardKind,
    *,
    about: About,
    binding: Binding,
    text: CardText,
    body: Mapping[str, Any] | None = None,
    seconds: int | None = None,
    until: datetime | None = None,
    supersedes: Card | None = None,
) -> Card:
    """Ask a person. The yes will bind the hash of the payload; the harness computes the risk (spec 0.5.2, `risk`).

    `body`: what its kind shows beside the payload. `seconds`: how long it waits, or `until` when exactly; else as its
    pace says. Raises what `contract.held` raises.
    """
    text, shown, payload = replace(text, intent=contract.on_one_line(text.intent)), dict(body or {}), binding.payload
    payload_hash = payloads.payload_hash(payload)
    held = contract.held(kind, binding.scope, payload, shown, text)
    opened = now()
    card: Card = Card.objects.create(
        kind=kind,
        risk=_risk_of(binding, held),
        **_words(kind, payload, text),
        body=shown,
        payload=dict(payload),
        payload_hash=payload_hash,
        reads=[dict(each) for each in binding.reads],
        scope=binding.scope,
        max_executions=binding.max_executions,
        token_seconds=binding.token_seconds or settings.APPROVAL_TOKEN_SECONDS,
        **_origin(about),
        supersedes=supersedes,
        created_at=opened,
        expires_at=until or opened + timedelta(seconds=seconds or queries.patience(held.pace, about.deployment_id)),
    )
    bus.enqueue(Kind.CARD_ALERT, scope_id=card.pk)
    bus.schedule(Kind.CARD_EXPIRY, scope_id=card.pk, due_at=card.expires_at)
    note(AuditEvent.CARD_OPENED, card, kind=card.kind, risk=card.risk, scope=card.scope)
    signals.card_opened(card)
    signals.card_changed(card)
    return card


def _risk_of(binding: Binding, kind: kinds.Kind) -> Risk:
    return risk.risk_of(
        binding.scope,
        reversible=binding.reversible,
        destroys=binding.destroys,
        at_least=binding.declared_risk,
        lifted=binding.lifted,
        base=kind.base(binding.payload),
    )


def _origin(about: About) -> dict[str, Any]:
    return {
        "subject_kind": about.kind,
        "subject_id": about.id,
        "deployment_id": about.deployment_id,
        "session_id": about.session_id,
        "requested_by": about.requested_by,
    }


def _words(kind: CardKind, payload: Mapping[str, Any], text: CardText) -> dict[str, Any]:
    return {
        "intent": text.intent,
        "rationale": text.rationale,
        "consequence": contract.labels(kind, payload, text.consequence),
        "affected": text.affected,
        "facts": [_without_blanks(fact) for fact in text.facts],
        "details": dict(text.details),
    }


def _without_blanks(fact: Fact) -> dict[str, str]:
    return {name: value for name, value in asdict(fact).items() if value is not None}


def decide_card(
    card_id: UUID,
    *,
    user: Any,
    verdict: ApprovalVerdict,
    conditions: Mapping[str, Any] | None = None,
    said: Mapping[str, Any] | None = None,
    step_up: str = "",
    face: str | None = None,
) -> Decision | Card | Refused | None:
    """Take one person's answer to a card. None while policy wants more people to say yes; one no ends it. `Refused`
    when their passkey was not believed and the card waits on, or when the card was withdrawn because its records have
    changed and nothing takes its place: the caller's transaction should commit. The card that
    shows how things are now, when what this one shows has changed: nobody's yes to the old one counts.

    The yes that is enough mints the token and tells `card_decided` in the same transaction. `said`: the answer chosen
    and what came with it (`kinds.choices_of`). `step_up`: the JSON of the passkey's assertion, where one is asked for.
    `face`: what the person's page showed (`queries.face_hash`); None for a caller that has no page.
    Raises `SilasError`: `not_found` 404, `card_decided`/`card_expired`/`card_withdrawn`/`card_damaged`/`card_changed`
    409, and what `answers.take_answer` raises.
    """
    require_approver(user)
    card = locks.lock_card(card_id)
    require_waiting(card)
    require_whole(card)
    if face is not None:
        queries.require_shown(card, face)
    if verdict == ApprovalVerdict.APPROVED and card.reads:
        fresh = signals.Fresh()
        signals.card_relied_on(card, fresh)
        instead = fresh.card or fresh.refused
        if instead is not None:
            return instead
    try:
        answer = answers.take_answer(
            card, user=user, verdict=verdict, conditions=conditions or {}, said=said or {}, step_up=step_up
        )
    except passkeys.NotBelieved as no:
        return passkeys.refused(no, user=user, about=passkeys.About.of(card))
    if not answers.is_enough(answer):
        note(AuditEvent.CARD_ANSWERED, card, actor=f"user:{user.pk}", answer=str(answer.pk))
        signals.card_changed(card)
        return None
    return _decide(card, answer)


def _decide(card: Card, answer: Answer) -> Decision:
    decision: Decision = Decision.objects.create(
        card=card,
        user=answer.user,
        verdict=answer.verdict,
        conditions=answer.conditions,
        said=answer.said,
        decided_at=answer.answered_at,
    )
    settle(card, CardStatus.DECIDED)
    actor = f"user:{answer.user_id}"
    note(AuditEvent.CARD_DECIDED, card, actor=actor, verdict=decision.verdict, decision=str(decision.pk))
    token = _token_for(card, answer, decision) if decision.verdict == ApprovalVerdict.APPROVED else None
    signals.card_decided(card, decision, token)
    signals.card_changed(card)
    fault_points.reach("approvals.decided")
    transaction.on_commit(partial(fault_points.reach, "approvals.committed"))
    return decision


def require_whole(card: Card) -> None:
    if payloads.payload_hash(card.payload) != card.payload_hash:
        raise SilasError("card_damaged", "This card no longer shows what it was opened for.", status=409)


def _token_for(card: Card, answer: Answer, decision: Decision) -> ApprovalToken | None:
    """The signed yes; none for a card that asks a question and opens nothing."""
    if not kinds.kind_of(card.kind).binds:
        return None
    scope = ApprovalScope(card.scope)
    return issue_token(
        payloads.approvable(scope, card.payload),
        decision,
        scope,
        expires_in=timedelta(seconds=card.token_seconds),
        max_executions=card.max_executions,
        conditions={**answers.conditions_of(answer), rules.FACE: queries.face_hash(card)},
    )
