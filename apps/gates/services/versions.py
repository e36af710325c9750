"""Write, activate, roll back and retire versions of gates. The only module that writes gates.

Every change locks its gate and is audited with ids and numbers only. A change based on an outdated version is refused,
so that a colleague's change is not overwritten unknowingly.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.allowance import MOST_EVALUATIONS
from apps.gates.enums import GateStatus
from apps.gates.locks import lock_gate
from apps.gates.models import Gate, GateVersion
from apps.gates.queries import max_gates_per_turn, sealed_name, sealed_value, version_of
from apps.gates.schemas import GateSpec
from apps.gates.validation import require_valid
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

LONGEST_NOTE = 200
TOO_MANY = (
    f"A turn can run at most {MOST_EVALUATIONS} gates. With this one, a message, its answer and a lookup would need "
    "{needed} at {place}, including those of its goal. Deactivate a gate first."
)


def write_version(
    spec: GateSpec,
    *,
    deployment_id: UUID | None = None,
    order: int = 100,
    actor: str = "system",
    note: str = "",
    seen: int | None = None,
) -> GateVersion:
    """Write a new version of the gate with this name, without activating it. Returns the newest version if it has the
    same content. `seen` is the number of the newest version that the author saw, 0 for a new gate.

    Raises `SilasError`: 409 `gate_changed`, 422 `gate_invalid`.
    """
    require_valid(spec)
    # None is the company's own gate.
    gate, _ = Gate.objects.get_or_create(deployment_id=deployment_id, name=spec.name)  # type: ignore[misc] # see above
    gate = lock_gate(gate.pk)
    _require_seen(gate, seen)
    newest = gate.versions.filter(number=gate.newest).first()
    content = content_of(spec)
    if newest is not None and (newest.content, newest.order) == (content, order):
        return newest
    return _create_version(gate, content, order=order, actor=actor, note=note)


def activate(gate_id: UUID, number: int, *, actor: str = "system") -> Gate:
    """Activate one version from the next turn on. Raises `NotFound`, 422 `gate_invalid`, 409 `too_many_gates`."""
    gate = lock_gate(gate_id)
    version = version_of(gate, number)
    if gate.active == number:
        return gate
    _require_activatable(version)
    data = {"version": number, "before": gate.active or 0}
    return _set_active(gate, version, AuditEvent.GATE_ACTIVATED, actor=actor, data=data)


def roll_back(gate_id: UUID, number: int, *, actor: str = "system", note: str = "") -> GateVersion:
    """Activate the content of an earlier version as a new version, so that the history shows the rollback.

    Raises `NotFound`, 409 `gate_unchanged` if that version is active, 422 `gate_invalid`.
    """
    gate = lock_gate(gate_id)
    old = version_of(gate, number)
    if gate.active == number:
        raise SilasError(ErrorCode.GATE_UNCHANGED)
    _require_activatable(old)
    # Numbers only rise, so that "version 5" means the same for ever and the way back is on record like every change.
    new = _create_version(gate, old.content, order=old.order, actor=actor, note=note, restores=number)
    data = {"version": new.number, "before": gate.active or 0, "restores": number}
    _set_active(gate, new, AuditEvent.GATE_ROLLED_BACK, actor=actor, data=data)
    return new


def retire(gate_id: UUID, *, actor: str = "system") -> Gate:
    """Deactivate the gate from the next turn on; its versions stay."""
    gate = lock_gate(gate_id)
    if gate.active is None:
        return gate
    return _set_active(gate, None, AuditEvent.GATE_RETIRED, actor=actor, data={"version": gate.active})


def save_gate(
    spec: GateSpec, *, deployment_id: UUID | None = None, order: int = 100, actor: str = "system", note: str = ""
) -> Gate:
    """Write a version and activate it, for code that sets up a deployment. Idempotent."""
    version = write_version(spec, deployment_id=deployment_id, order=order, actor=actor, note=note)
    return activate(version.gate_id, version.number, actor=actor)


def content_of(spec: GateSpec) -> dict[str, object]:
    """The content of a version: all fields but the name, which belongs to the gate."""
    return {name: value for name, value in spec.to_plan_dict().items() if name != "name"}


def _require_seen(gate: Gate, seen: int | None) -> None:
    if seen is not None and seen != gate.newest:
        raise SilasError(
            ErrorCode.GATE_CHANGED,
            extra={"newest": gate.newest},
        )


def _create_version(
    gate: Gate, content: dict[str, Any], *, order: int, actor: str, note: str, restores: int | None = None
) -> GateVersion:
    number = gate.newest + 1
    version: GateVersion = GateVersion.objects.create(
        gate=gate,
        number=number,
        order=order,
        content=content,
        restores=restores,
        written_by=actor,
        note=note.strip()[:LONGEST_NOTE],
    )
    gate.newest = number
    gate.save(update_fields=["newest"])
    record(AuditEvent.GATE_SAVED, actor=actor, subject=f"gate:{gate.pk}", data={"version": number})
    return version


def _require_activatable(version: GateVersion) -> None:
    """Raises if the content is invalid by today's rules, or if turns would need more gates than allowed."""
    needed, place = max_gates_per_turn(version)
    if needed > MOST_EVALUATIONS:
        raise SilasError(ErrorCode.TOO_MANY_GATES, TOO_MANY.format(needed=needed, place=place))
    try:
        require_valid(version.to_spec())
    except ValueError as error:
        raise SilasError(ErrorCode.GATE_INVALID, gettext("This version is not a valid gate.")) from error


def _set_active(
    gate: Gate, version: GateVersion | None, event: AuditEvent, *, actor: str, data: dict[str, Any]
) -> Gate:
    """Set or clear the active version.

    Active gates are sealed with the installation key; unsealed rows block (queries).
    """
    gate.active = version.number if version else None
    gate.status = GateStatus.ACTIVE if version else GateStatus.RETIRED
    if version is None:
        # In the same transaction as the row: a seal without it, or the reverse, would block every message.
        policy_seals.remove_item(PolicyKind.GATES, sealed_name(gate))
    else:
        policy_seals.seal_item(PolicyKind.GATES, sealed_name(gate), sealed_value(gate, version))
    gate.save(update_fields=["active", "status"])
    record(event, actor=actor, subject=f"gate:{gate.pk}", data=data)
    return gate
