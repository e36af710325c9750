"""A person at the console lets a held agent go on: by itself, by a code, by a token. One door for all three.

Always holds: whoever presses may decide in this company; where approvals' policy wants a passkey behind a press as
grave as this, its assertion was made for this kind of press about exactly this hold, by this person, once and soon
(ADR 65). Faces call these three and none of what is behind them.
"""

from __future__ import annotations

from typing import Any, assert_never
from uuid import UUID

from apps.approvals.enums import ChallengePurpose
from apps.approvals.queries import passkey_wanted
from apps.approvals.schemas import Refused
from apps.approvals.services import passkeys
from apps.safety.enums import Press
from apps.safety.locks import lock_hold
from apps.safety.models import Hold
from apps.safety.rules import press_risk
from apps.safety.services.challenges import show_code
from apps.safety.services.confirming import allow, issue_token
from apps.tenants.enums import Capability
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.canonical import sha256_hex
from kernel.errors import NotFound

_PURPOSES = {
    Press.ALLOW: ChallengePurpose.HOLD_ALLOW,
    Press.CODE: ChallengePurpose.HOLD_CODE,
    Press.TOKEN: ChallengePurpose.HOLD_TOKEN,
}


def needs_passkey(kind: str, user: Any) -> bool:
    """Is this person asked for a passkey before they let an agent go on that is held so?"""
    return passkey_wanted(press_risk(kind), user)


def begin_press(hold_id: UUID, what: Press, *, user: Any, rp_id: str, origin: str) -> dict[str, Any] | None:
    """What the browser asks this person's passkey before the press; None when none is needed. Raises `NotFound`,
    `passkey_missing` 403, `passkey_elsewhere` 409."""
    require_role(user, roles_with(Capability.DECIDE))
    hold = Hold.objects.filter(pk=hold_id).first()
    if hold is None:
        raise NotFound("hold")
    return passkeys.begin_press(about(hold, what), risk=press_risk(hold.kind), user=user, rp_id=rp_id, origin=origin)


def press(hold_id: UUID, what: Press, *, user: Any, step_up: str = "") -> str | Refused:
    """The code or token for the eyes of this person alone, "" when the agent simply goes on, or that their passkey was
    not believed, which the caller commits. `step_up`: the JSON of the passkey's answer.

    Raises `NotFound`; 403 `passkey_missing`, `step_up_required`; 409 `not_held`, `needs_code`.
    """
    require_role(user, roles_with(Capability.DECIDE))
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound("hold")
    proof = passkeys.prove_press(about(hold, what), risk=press_risk(hold.kind), user=user, assertion=step_up)
    if isinstance(proof, Refused):
        return proof
    stored = proof.model_dump(mode="json") if proof else None
    shown = _done(hold_id, what, actor=user.actor, proof=sha256_hex(stored) if stored else "")
    if stored:
        Hold.objects.filter(pk=hold_id).update(proofs={**hold.proofs, what.value: stored})
    return shown


def _done(hold_id: UUID, what: Press, *, actor: str, proof: str) -> str:
    match what:
        case Press.ALLOW:
            allow(hold_id, actor=actor, proof=proof)
            return ""
        case Press.CODE:
            return show_code(hold_id, actor=actor, proof=proof)
        case Press.TOKEN:
            return issue_token(hold_id, actor=actor, proof=proof)
        case _:
            assert_never(what)


def about(hold: Hold, what: Press) -> passkeys.About:
    """What a passkey signs: this kind of press, this hold, and all that the page says of it."""
    said = {
        "principal": hold.principal,
        "agent": str(hold.agent_id),
        "kind": str(hold.kind),
        "digest": hold.digest,
        "hint": hold.hint,
        "reason": hold.reason,
        "since": hold.created_at.isoformat(),
    }
    return passkeys.About(_PURPOSES[what], subject=f"safety_hold:{hold.pk}", content=sha256_hex(said))
