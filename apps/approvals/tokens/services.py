"""Issue, verify, check and revoke approval tokens. Each runs inside the caller's tenant scope.

Only an approved verdict issues a token. `verify_token` spends one use under the lock of the signed nonce, by a function
of the database; `check_token` spends nothing. Lock order: card, key, token, audit head (spec 5.11).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from secrets import token_hex

from pydantic import ValidationError

from apps.approvals import locks, queries, rules, signals
from apps.approvals.cards.lifecycle import require_approver
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, Reason
from apps.approvals.keys import signing
from apps.approvals.models import ApprovalToken, Decision, TokenRevocation
from apps.approvals.schemas import to_base64
from apps.approvals.tokens.schemas import Approvable, SignedToken, TokenClaims, TokenVerdict
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import User
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext


def issue_token(
    subject: Approvable,
    decision: Decision,
    scope: ApprovalScope,
    *,
    expires_in: timedelta,
    max_executions: int = 1,
    conditions: Mapping[str, object] | None = None,
) -> ApprovalToken:
    """Issue a token, signed with the key of the person who decided (spec 5.11). Web processes only.

    Raises `SilasError`: `not_approved`, `spawn_policy_missing` (standing without a template), `signing_key_missing`.
    """
    if decision.verdict != ApprovalVerdict.APPROVED:
        raise SilasError(ErrorCode.NOT_APPROVED, gettext("Only an approved decision authorizes anything."))
    issued, conditions = now(), dict(conditions or {})
    if scope is ApprovalScope.STANDING:
        if not subject.policy.failure_context:
            raise SilasError(ErrorCode.SPAWN_POLICY_MISSING)
        conditions[rules.SPAWN_POLICY] = rules.spawn_policy_hash(subject.policy)
    claims = TokenClaims(
        plan_hash=subject.plan_hash,
        work_item_id=subject.id,
        scope=scope,
        verdict=ApprovalVerdict(decision.verdict),
        issued_at=issued,
        expires_at=issued + expires_in,
        nonce=token_hex(16),
        conditions=conditions,
        max_executions=max_executions,
    )
    key = signing.key_for(decision.user)
    token = ApprovalToken(**claims.model_dump(), decision=decision, key_id=key.key_id)
    token.signature = to_base64(signing.sign(key, rules.signed_bytes(claims)))
    token.save(force_insert=True)
    record(
        AuditEvent.APPROVAL_TOKEN_ISSUED,
        actor=f"user:{decision.user_id}",
        subject=f"token:{token.pk}",
        data={"work_item": subject.id, "plan_hash": subject.plan_hash, "scope": scope.value, "key": key.key_id},
    )
    return token


def verify_token(token: ApprovalToken, subject: Approvable, spawned: Approvable | None = None) -> TokenVerdict:
    """Spend one use of `token` for `subject`, or for `spawned` under a standing token of its goal `subject`.

    `tokens.scopes` lists where each scope is spent. Holds the lock of the signed nonce until the scope ends.
    """
    signed = _read(token)
    facts = queries.token_facts(token.nonce, key_id=token.key_id, bound_hash=subject.plan_hash)
    # The signature first: nothing else in a row that no key signed is worth judging.
    if signed is None or facts.key is None or not rules.is_signed_by(signed, facts.key.public_key):
        return _record_refusal(str(token.pk), Reason.INVALID_SIGNATURE)
    verdict = rules.spend_verdict(signed, subject, spawned=spawned, now=now())
    if not verdict.ok:
        return _record_refusal(signed.token_id, verdict.reason)
    # The database checks key and revocation again when it spends. Only the sealed list knows of rows that were deleted.
    if refusal := rules.key_refusal(facts.key, signed) or (Reason.TOKEN_REVOKED if facts.revoked else None):
        return _record_refusal(signed.token_id, refusal)
    spent_for = spawned or subject
    spent = locks.spend_use(signed, bound_hash=spent_for.plan_hash, subject_id=spent_for.id)
    if isinstance(spent, Reason):
        return _record_refusal(signed.token_id, spent)
    data = {"work_item": spent_for.id, "plan_hash": spent_for.plan_hash, "ordinal": spent}
    record(AuditEvent.APPROVAL_VERIFIED, subject=f"token:{signed.token_id}", data=data)
    return TokenVerdict.of(Reason.OK)


def check_token(token: ApprovalToken, subject: Approvable) -> TokenVerdict:
    """Decide whether a token that was spent for `subject` is still valid. Writes nothing (spec 5.2.1 step 0).

    For a child under a standing token `subject.goal` is the goal; the use recorded for exactly this child counts.
    """
    facts = queries.token_facts(token.nonce, key_id=token.key_id, bound_hash=subject.plan_hash)
    signed = _read(token)
    if signed is None:
        return TokenVerdict.of(Reason.INVALID_SIGNATURE)
    if refusal := rules.key_refusal(facts.key, signed) or (Reason.TOKEN_REVOKED if facts.revoked else None):
        return TokenVerdict.of(refusal)
    return rules.run_verdict(signed, subject, now=now(), used=facts.used, used_for_subject=facts.used_for_subject)


def unproven_tokens() -> list[str]:
    """Ids of the tenant's approvals that no certified key signed: of rows that were written or altered by hand. Revoked
    and expired ones are proven too. Writes nothing."""
    unproven = []
    for token in ApprovalToken.objects.order_by("pk").iterator():
        signed, key = _read(token), queries.token_facts(token.nonce, key_id=token.key_id, bound_hash="").key
        if signed is None or key is None or not rules.is_signed_by(signed, key.public_key):
            unproven.append(str(token.pk))
    return unproven


def revoke_token(token: ApprovalToken, *, user: User, reason: str, client_key: str = "") -> TokenRevocation:
    """Revoke an approval: it is not spent any more, and what it was spent for does not start (again). `client_key`: id
    of the key of the program that does it on the person's behalf.

    `reason` is for people and stays on the row. Raises `SilasError`: `approver_required` 403, `reason_missing`,
    `not_found` 404, `token_revoked` 409, and as `policy_seals.seal_item`. Sends `token_revoked` in the same
    transaction."""
    require_approver(user)
    if not reason.strip():
        raise SilasError(ErrorCode.REASON_MISSING)
    stored = locks.lock_token(token.nonce)
    if stored is None:
        raise NotFound()
    if TokenRevocation.objects.filter(token_nonce=stored.nonce).exists():
        raise SilasError(ErrorCode.TOKEN_REVOKED)
    revocation: TokenRevocation = TokenRevocation.objects.create(
        token=stored, token_nonce=stored.nonce, user=user, reason=reason.strip()[:300], revoked_at=now()
    )
    # The sealed list decides too, so that deleting the row with SQL does not make the token valid again.
    policy_seals.seal_item(PolicyKind.REVOCATIONS, queries.revoked_token_name(stored.nonce), {})
    data = {"work_item": stored.work_item_id, "scope": stored.scope, "used": queries.count_uses(stored.nonce)}
    if client_key:
        data["client_key"] = client_key
    record(AuditEvent.APPROVAL_REVOKED, actor=user.actor, subject=f"token:{stored.pk}", data=data)
    signals.token_revoked(stored, revocation)
    return revocation


def _read(token: ApprovalToken) -> SignedToken | None:
    try:
        return SignedToken.of_row(token)
    except ValidationError:
        return None


def _record_refusal(token_id: str, reason: Reason) -> TokenVerdict:
    record(AuditEvent.APPROVAL_REFUSED, subject=f"token:{token_id}", data={"reason": reason.value})
    return TokenVerdict.of(reason)
