"""Let a held agent continue: allow it, show a code or issue a token. The only entry for all three operator actions.

The operator must have the capability to decide. Where the approvals policy requires a passkey for an action of this
risk, its assertion was made for this action on exactly this hold, by this person, once and recently (ADR 24).
"""

from __future__ import annotations

from typing import assert_never
from uuid import UUID

from apps.approvals import queries as approvals
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.enums import ChallengePurpose
from apps.approvals.passkeys import services as passkeys
from apps.safety.enums import OperatorAction
from apps.safety.locks import lock_hold
from apps.safety.models import Hold
from apps.safety.rules.holds import approval_risk
from apps.safety.services.challenges import show_code
from apps.safety.services.confirmations import allow, issue_token
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.canonical import sha256_hex
from kernel.errors import NotFound

_PURPOSES = {
    OperatorAction.ALLOW: ChallengePurpose.HOLD_ALLOW,
    OperatorAction.CODE: ChallengePurpose.HOLD_CODE,
    OperatorAction.TOKEN: ChallengePurpose.HOLD_TOKEN,
}


def needs_passkey(kind: str, user: User) -> bool:
    """Return whether this person must use a passkey to lift a hold of this kind."""
    return approvals.needs_passkey(approval_risk(kind), user)


def begin_operator_action(
    hold_id: UUID, action: OperatorAction, *, user: User, rp_id: str, origin: str
) -> dict[str, object] | None:
    """Return the WebAuthn options for the browser, or None when no passkey is needed.

    Raises `NotFound`, `passkey_missing` 403, `passkey_elsewhere` 409.
    """
    require_role(user, roles_with(Capability.DECIDE))
    hold = Hold.objects.filter(pk=hold_id).first()
    if hold is None:
        raise NotFound()
    subject = assertion_subject(hold, action)
    return passkeys.begin_action_step_up(subject, risk=approval_risk(hold.kind), user=user, rp_id=rp_id, origin=origin)


def perform_operator_action(
    hold_id: UUID, action: OperatorAction, *, user: User, step_up: str = ""
) -> str | AnswerRefused:
    """Perform the action and return the code or token to show to this person alone, "" for `ALLOW`.

    Returns `Refused` when the passkey's answer was not valid, which the caller commits. `step_up`: the JSON of that
    answer. Raises `NotFound`; 403 `passkey_missing`, `step_up_required`; 409 `not_held`, `needs_code`.
    """
    require_role(user, roles_with(Capability.DECIDE))
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound()
    subject = assertion_subject(hold, action)
    proof = passkeys.prove_action(subject, risk=approval_risk(hold.kind), user=user, assertion=step_up)
    if isinstance(proof, AnswerRefused):
        return proof
    stored = proof.model_dump(mode="json") if proof else None
    secret, given = "", {"actor": user.actor, "proof": sha256_hex(stored) if stored else ""}
    match action:
        case OperatorAction.ALLOW:
            allow(hold_id, **given)
        case OperatorAction.CODE:
            secret = show_code(hold_id, **given)
        case OperatorAction.TOKEN:
            secret = issue_token(hold_id, **given)
        case _:
            assert_never(action)
    if stored:
        Hold.objects.filter(pk=hold_id).update(proofs={**hold.proofs, action.value: stored})
    return secret


def assertion_subject(hold: Hold, action: OperatorAction) -> passkeys.PasskeySubject:
    """What the passkey signs: the action, the hold, and everything that the page shows of it."""
    content = {
        "principal": hold.principal,
        "agent": str(hold.agent_id),
        "kind": str(hold.kind),
        "digest": hold.digest,
        "hint": hold.hint,
        "reason": hold.reason,
        "since": hold.created_at.isoformat(),
    }
    return passkeys.PasskeySubject(_PURPOSES[action], subject=f"safety_hold:{hold.pk}", content=sha256_hex(content))
