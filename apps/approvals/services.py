"""Open a card, decide it, mint an approval token, spend it, check it. Each runs inside the caller's tenant scope.

Always holds: one card is decided once, by an approver; only an approved verdict mints a token; `verify` spends
a use under the lock of the signed nonce, `check` spends nothing. Lock order: card, token, audit head (spec 5.11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from secrets import token_hex
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from pydantic import ValidationError

from apps.approvals import keys, locks, payloads, queries, rules, signals
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Reason, Risk
from apps.approvals.models import CARD_TRANSITIONS, ApprovalToken, Card, Decision, TokenUse
from apps.approvals.schemas import Approvable, Fact, SignedToken, TokenClaims, Verdict, to_base64
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.errors import SilasError

APPROVING_ROLES = (Role.OWNER, Role.APPROVER)


def open_card(
    kind: CardKind,
    *,
    subject_kind: str,
    subject_id: UUID,
    payload: Mapping[str, Any],
    scope: ApprovalScope,
    intent: str,
    rationale: str,
    consequence: Mapping[str, str],
    reversible: bool,
    declared_risk: Risk = Risk.LOW,
    affected: str = "",
    facts: Sequence[Fact] = (),
    details: Mapping[str, Any] | None = None,
    deployment_id: UUID | None = None,
    session_id: UUID | None = None,
    max_executions: int = 1,
    token_seconds: int | None = None,
) -> Card:
    """Ask a person. The yes will bind the hash of `payload`; risk follows from scope and reversibility (spec 0.5.2).

    `consequence` says what each button does, under `approve` and `decline`. `token_seconds`: how long the yes
    stays valid once given.
    """
    opened = now()
    card: Card = Card.objects.create(
        kind=kind,
        risk=rules.risk_of(scope, reversible=reversible, at_least=declared_risk),
        intent=intent,
        rationale=rationale,
        consequence={"approve": consequence["approve"], "decline": consequence["decline"]},
        affected=affected,
        facts=[_without_blanks(fact) for fact in facts],
        details=dict(details or {}),
        payload=dict(payload),
        payload_hash=payloads.payload_hash(payload),
        scope=scope,
        max_executions=max_executions,
        token_seconds=token_seconds or settings.APPROVAL_TOKEN_SECONDS,
        subject_kind=subject_kind,
        subject_id=subject_id,
        deployment_id=deployment_id,
        session_id=session_id,
        created_at=opened,
        expires_at=opened + timedelta(seconds=settings.CARD_TIMEOUT_SECONDS),
    )
    _record(AuditEvent.CARD_OPENED, card, kind=card.kind, risk=card.risk, scope=card.scope)
    signals.card_opened(card)
    signals.card_changed(card)
    return card


def _without_blanks(fact: Fact) -> dict[str, str]:
    return {name: value for name, value in asdict(fact).items() if value is not None}


def decide_card(
    card_id: UUID, *, user: Any, verdict: ApprovalVerdict, conditions: Mapping[str, Any] | None = None
) -> Decision:
    """Answer a card, once. An approved one mints its token and tells `card_decided` in the same transaction.

    Raises `SilasError`: `approver_required` 403, `not_found` 404, `card_decided`/`card_expired`/`card_damaged` 409.
    """
    _require_approver(user)
    card = locks.lock_card(card_id)
    _require_decidable(card)
    decision: Decision = Decision.objects.create(
        card=card, user=user, verdict=verdict, conditions=dict(conditions or {}), decided_at=now()
    )
    _move(card, CardStatus.DECIDED)
    _record(AuditEvent.CARD_DECIDED, card, actor=f"user:{user.pk}", verdict=decision.verdict, decision=str(decision.pk))
    token = _token_for(card, decision) if decision.verdict == ApprovalVerdict.APPROVED else None
    signals.card_decided(card, decision, token)
    signals.card_changed(card)
    return decision


def _require_approver(user: Any) -> None:
    if not Membership.objects.filter(user=user, role__in=APPROVING_ROLES).exists():
        raise SilasError("approver_required", "Only an owner or an approver can decide this.", status=403)


def _require_decidable(card: Card) -> None:
    if card.status == CardStatus.OPEN and card.expires_at <= now():
        raise SilasError("card_expired", "The time to decide this has run out. Nothing was changed.", status=409)
    if card.status != CardStatus.OPEN:
        raise SilasError(f"card_{card.status}", "This was already settled. Nothing more was changed.", status=409)
    if payloads.payload_hash(card.payload) != card.payload_hash:
        raise SilasError("card_damaged", "This card no longer shows what it was opened for.", status=409)


def _token_for(card: Card, decision: Decision) -> ApprovalToken:
    return issue_token(
        payloads.approvable_plan(card.payload),
        decision,
        ApprovalScope(card.scope),
        expires_in=timedelta(seconds=card.token_seconds),
        max_executions=card.max_executions,
    )


def expire_cards() -> int:
    """Close the open cards whose time has run out: the safe answer to silence is no (spec 0.5.4). Returns how many."""
    late = Card.objects.select_for_update(skip_locked=True, no_key=True).filter(
        status=CardStatus.OPEN, expires_at__lte=now()
    )
    cards = list(late)
    for card in cards:
        _move(card, CardStatus.EXPIRED)
        _record(AuditEvent.CARD_EXPIRED, card)
        signals.card_changed(card)
    return len(cards)


def _move(card: Card, status: CardStatus) -> None:
    if status not in CARD_TRANSITIONS[CardStatus(card.status)]:
        raise SilasError("card_settled", "A settled card stays settled.", status=409)
    card.status = status
    card.save(update_fields=["status"])


def issue_token(
    subject: Approvable,
    decision: Decision,
    scope: ApprovalScope,
    *,
    expires_in: timedelta,
    max_executions: int = 1,
    conditions: Mapping[str, Any] | None = None,
) -> ApprovalToken:
    """Mint and sign, with the key of the person who decided (spec 5.11). Web processes only.

    Raises `SilasError`: `not_approved`, `spawn_policy_missing` (standing without a template), `signing_key_missing`.
    """
    if decision.verdict != ApprovalVerdict.APPROVED:
        raise SilasError("not_approved", "Only an approved decision opens anything.", status=409)
    issued = now()
    claims = TokenClaims(
        plan_hash=subject.plan_hash,
        work_item_id=subject.id,
        scope=scope,
        verdict=ApprovalVerdict(decision.verdict),
        issued_at=issued,
        expires_at=issued + expires_in,
        nonce=token_hex(16),
        conditions={**(conditions or {}), **_standing_conditions(subject, scope)},
        max_executions=max_executions,
    )
    key = keys.key_for(decision.user)
    token = ApprovalToken(**claims.model_dump(), decision=decision, key_id=key.key_id)
    token.signature = to_base64(keys.sign(key, rules.signed_bytes(claims)))
    token.save(force_insert=True)
    record(
        AuditEvent.APPROVAL_TOKEN_ISSUED,
        actor=f"user:{decision.user_id}",
        subject=f"token:{token.pk}",
        data={"work_item": subject.id, "plan_hash": subject.plan_hash, "scope": scope.value, "key": key.key_id},
    )
    return token


def _standing_conditions(subject: Approvable, scope: ApprovalScope) -> dict[str, str]:
    if scope is not ApprovalScope.STANDING:
        return {}
    if not subject.policy.failure_context:
        raise SilasError("spawn_policy_missing", "A standing approval needs the template of what it may start.")
    return {"spawn_policy_hash": rules.spawn_policy_hash(subject.policy)}


def verify(token: ApprovalToken, subject: Approvable, spawned: Approvable | None = None) -> Verdict:
    """Spend one use of `token` for `subject`, or for `spawned` under a standing token of its goal `subject`.

    The authorization site (spec 5.1.2 step 6, 5.2.3 step 4). Holds the lock of the signed nonce until the scope ends.
    """
    signed = _genuine(token)
    if signed is None:
        return _refused(token, Verdict.of(Reason.INVALID_SIGNATURE))
    if not locks.lock_token(signed.nonce):
        return _refused(token, Verdict.of(Reason.TOKEN_UNKNOWN))
    used = queries.uses(signed.nonce)
    verdict = rules.may_spend(signed, subject, spawned=spawned, now=now(), used=used)
    if not verdict.ok:
        return _refused(token, verdict)
    _spend(signed, spawned or subject, ordinal=used + 1)
    return verdict


def check(token: ApprovalToken, subject: Approvable) -> Verdict:
    """Is an already spent token still good for `subject`? Writes nothing (spec 5.2.1 step 0).

    For a child under a standing token `subject.goal` is the goal; the use recorded for exactly this child counts.
    """
    signed = _genuine(token)
    if signed is None:
        return Verdict.of(Reason.INVALID_SIGNATURE)
    used, for_subject = queries.uses_of(signed.nonce, bound_hash=subject.plan_hash)
    return rules.may_run(signed, subject, now=now(), used=used, used_for_subject=for_subject)


def _genuine(token: ApprovalToken) -> SignedToken | None:
    """The signed content of a row, if an approver of this tenant signed exactly that."""
    public_key = queries.public_key(token.key_id)
    try:
        signed = SignedToken.of_row(token)
    except ValidationError:
        return None
    return signed if public_key and rules.is_signed_by(signed, public_key) else None


def _spend(signed: SignedToken, subject: Approvable, *, ordinal: int) -> None:
    TokenUse.objects.create(
        token_nonce=signed.nonce,
        ordinal=ordinal,
        bound_hash=subject.plan_hash,
        subject_id=subject.id,
        binding=f"{signed.token_id}:{subject.plan_hash}:{uuid4().hex}",
        used_at=now(),
    )
    data = {"work_item": subject.id, "plan_hash": subject.plan_hash, "ordinal": ordinal}
    record(AuditEvent.APPROVAL_VERIFIED, subject=f"token:{signed.token_id}", data=data)


def _refused(token: ApprovalToken, verdict: Verdict) -> Verdict:
    record(AuditEvent.APPROVAL_REFUSED, subject=f"token:{token.pk}", data={"reason": verdict.reason.value})
    return verdict


def _record(event: AuditEvent, card: Card, *, actor: str = "system", **data: str | int | bool) -> None:
    subject = f"{card.subject_kind}:{card.subject_id}"
    record(event, actor=actor, subject=f"card:{card.pk}", data={"about": subject, **data})
