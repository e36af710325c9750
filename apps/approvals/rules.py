"""Decide from values whether an approval token covers a subject, and which policy applies to a card.

Only an approved verdict authorizes anything, and a standing approval covers exactly what its goal's template makes of a
child's own values. No ORM, no clock, no private keys (spec 5.11; contract silas 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from apps.approvals.cards.risk import is_at_least
from apps.approvals.cards.schemas import AnswerClaims, Policy
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, Deciders, PasskeyRule, Reason, Risk
from apps.approvals.keys.schemas import KeyFacts
from apps.approvals.tokens.payloads import payload_hash
from apps.approvals.tokens.schemas import Approvable, SignedToken, SpawnPolicy, TokenClaims, TokenVerdict
from apps.tenants.enums import Capability, Role
from apps.tenants.rules import roles_with
from kernel.canonical import canonical_bytes, canonical_json, sha256_hex

APPROVING_ROLES = roles_with(Capability.DECIDE)
ROLES_BY_DECIDERS: Mapping[Deciders, tuple[Role, ...]] = {
    Deciders.APPROVERS: APPROVING_ROLES,
    Deciders.OWNERS: (Role.OWNER,),
}
# The kind of statement with which the installation key certifies an approver's key (kernel.trust).
KEY_CERTIFICATE = "approver_key"
# The same for the key with which a program decides on a person's behalf.
CLIENT_KEY_CERTIFICATE = "client_key"
SPAWN_POLICY, ANSWERS, FACE = "spawn_policy_hash", "answers", "face"
# The conditions that a token may carry: the template of a standing approval; the answers that an approval by several
# people rests on; the hash of everything that its card showed.
KNOWN_CONDITIONS = frozenset({SPAWN_POLICY, ANSWERS, FACE})


def signed_bytes(claims: TokenClaims) -> bytes:
    """Return the canonical JSON of the ten signed fields, datetimes in ISO 8601 with their offset."""
    return canonical_bytes(
        {
            "plan_hash": claims.plan_hash,
            "work_item_id": claims.work_item_id,
            "scope": claims.scope.value,
            "verdict": claims.verdict.value,
            "issued_at": claims.issued_at.isoformat(),
            "expires_at": claims.expires_at.isoformat(),
            "nonce": claims.nonce,
            "approval_strength": claims.approval_strength.value,
            "conditions": claims.conditions,
            "max_executions": claims.max_executions,
        }
    )


def is_signed_by(token: SignedToken, public_key: bytes) -> bool:
    return is_valid_signature(token.signature, signed_bytes(token), public_key)


def is_valid_signature(signature: bytes, message: bytes, public_key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    # A stored key or signature of the wrong length proves no more than a wrong one.
    except (InvalidSignature, ValueError):
        return False
    return True


def spend_verdict(
    token: SignedToken, subject: Approvable, *, spawned: Approvable | None, now: datetime
) -> TokenVerdict:
    """Decide whether the token may be spent for the subject. Neither its signature nor what changes after the approval
    is checked here: the database checks the latter under the token's lock (`sql.spend`)."""
    return _first_refusal(
        lambda: _not_approved(token),
        lambda: _unknown_condition(token),
        lambda: _unbound(token, subject, spawned),
        lambda: _expired(token, now),
    )


def run_verdict(
    token: SignedToken, subject: Approvable, *, now: datetime, used: int, used_for_subject: bool
) -> TokenVerdict:
    """Decide whether a spent token still covers the subject; its signature is not checked here. `used_for_subject`:
    the ledger has a use bound to this hash."""
    standing = token.scope is ApprovalScope.STANDING
    authorized, spawned = (subject.goal, subject) if standing else (subject, None)
    return _first_refusal(
        lambda: _not_approved(token),
        lambda: _unknown_condition(token),
        lambda: _unbound(token, authorized, spawned),
        lambda: _expired(token, now),
        lambda: None if used <= token.max_executions else Reason.EXECUTION_LIMIT_EXCEEDED,
        lambda: None if used and used_for_subject else Reason.TOKEN_NOT_CONSUMED,
    )


def key_refusal(key: KeyFacts | None, token: SignedToken) -> Reason | None:
    """Return why the key does not prove the token, if so. A key may have signed until it was retired."""
    if key is None or not is_signed_by(token, key.public_key):
        return Reason.INVALID_SIGNATURE
    if key.void:
        return Reason.KEY_REVOKED
    return Reason.KEY_RETIRED if key.retired_at is not None and token.issued_at >= key.retired_at else None


def answer_bytes(claims: AnswerClaims) -> bytes:
    """Return the bytes that an approver signs when they answer a card."""
    return canonical_bytes(claims.model_dump(mode="json", exclude=None if claims.face else {"face"}))


def challenge_bytes(
    *, purpose: str, tenant_id: str, user_id: str, card_id: str, payload_hash: str, nonce: str, subject: str = ""
) -> bytes:
    """Return the challenge that a passkey signs. It names the purpose, the person and, for a card or another subject,
    which one and exactly what the approval binds."""
    fields = {"purpose": purpose, "tenant": tenant_id, "user": user_id, "card": card_id, "payload": payload_hash}
    if subject:
        fields["subject"] = subject
    return bytes.fromhex(sha256_hex({**fields, "nonce": nonce}))


def answer_hash(face: str, *, verdict: ApprovalVerdict, said: Mapping[str, object]) -> str:
    """Return the hash of one answer to what a card shows, which a passkey signs on the page of a decision link."""
    return sha256_hex({"face": face, "verdict": verdict.value, "said": dict(said)})


# Applies while the stored policies cannot be trusted.
STRICTEST_POLICY = Policy(who=Deciders.OWNERS, people=5, passkey=PasskeyRule.REQUIRED, own_requests=False)


def most_specific_policy(fitting: Iterable[Policy]) -> Policy:
    """Return the policy that says most about a card, of those that fit it; a scope says more than a risk."""
    return max(fitting, key=lambda policy: (bool(policy.scope), bool(policy.risk)), default=Policy())


def needs_passkey(policy: Policy, risk: Risk, *, has_one: bool) -> bool:
    """True if this person's approval needs a passkey (spec 0.5.2)."""
    if policy.passkey is PasskeyRule.REQUIRED:
        return True
    return has_one and risk in (Risk.HIGH, Risk.IRREVERSIBLE)


def client_may_decide(policy: Policy, risk: Risk, *, scope: str, scopes: Iterable[str], max_risk: Risk) -> bool:
    """True if a program whose key has these rights may decide a card of this scope and risk (ADR 124).

    High and irreversible risk also takes a policy for exactly that risk, and a policy that requires a passkey excludes
    programs, which have none.
    """
    if scope not in scopes or not is_at_least(max_risk, risk):
        return False
    if policy.passkey is PasskeyRule.REQUIRED:
        return False
    return risk in (Risk.LOW, Risk.MEDIUM) or policy.risk == risk


def _first_refusal(*checks: Callable[[], Reason | None]) -> TokenVerdict:
    refusals = (check() for check in checks)
    return TokenVerdict.of(next((reason for reason in refusals if reason), Reason.OK))


def _not_approved(token: SignedToken) -> Reason | None:
    return None if token.verdict is ApprovalVerdict.APPROVED else Reason.NOT_APPROVED


def _unknown_condition(token: SignedToken) -> Reason | None:
    # A condition that no code enforces would be an empty promise, so a token with one authorizes nothing.
    return None if set(token.conditions) <= KNOWN_CONDITIONS else Reason.CONDITION_UNKNOWN


def _expired(token: SignedToken, now: datetime) -> Reason | None:
    return Reason.TOKEN_EXPIRED if now >= token.expires_at else None


def _unbound(token: SignedToken, subject: Approvable | None, spawned: Approvable | None) -> Reason | None:
    if subject is None or token.work_item_id != subject.id:
        return Reason.STANDING_PARENT_MISMATCH if spawned else Reason.SUBJECT_MISMATCH
    if token.plan_hash != subject.plan_hash:
        return Reason.PLAN_HASH_MISMATCH
    if token.scope is ApprovalScope.STANDING:
        return _outside_standing(token, subject, spawned)
    return Reason.SPAWN_NOT_ALLOWED if spawned else None


def _outside_standing(token: SignedToken, goal: Approvable, child: Approvable | None) -> Reason | None:
    if child is None:
        return Reason.STANDING_REQUIRES_SPAWNED_TASK
    if child.parent_id != goal.id:
        return Reason.STANDING_PARENT_MISMATCH
    if token.conditions.get(SPAWN_POLICY) != spawn_policy_hash(goal.policy):
        return Reason.SPAWN_POLICY_MISMATCH
    return None if child.plan_hash == child.rendered_hash else Reason.SPAWN_OUTSIDE_POLICY


def spawn_policy_hash(policy: SpawnPolicy) -> str:
    """Hash a goal's template, never the substituted text. The order of its lists does not count."""
    return payload_hash(
        {
            # Everything that decides how a child runs, so that a goal which changes later is outside its approval.
            "failure_context_template": policy.failure_context or "",
            "skills": sorted(set(policy.skills)),
            "gates": _as_sorted_text(policy.gates),
            "verify": _as_sorted_text(policy.verify),
            "escalation_config": _reachable_escalations(policy),
        }
    )


def _as_sorted_text(dumps: Iterable[dict[str, object]]) -> list[str]:
    return sorted(canonical_json(dump) for dump in dumps)


def _reachable_escalations(policy: SpawnPolicy) -> dict[str, dict[str, object]]:
    names = {policy.on_failure, *(str(gate.get("on_block")) for gate in policy.gates)}
    return {name: policy.escalation[name] for name in sorted(names & set(policy.escalation))}
