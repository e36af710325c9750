"""How does policy change? By versions: written, brought into force, rolled back, retired. Nobody else writes gates.

Every change locks its gate and is written down with ids and numbers only. What somebody changed without having seen
the newest version is refused: nobody overwrites a colleague unknowingly (ADR 0034).
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
from kernel.errors import SilasError

LONGEST_NOTE = 200
TOO_MANY = (
    f"A turn asks {MOST_EVALUATIONS} gates at most. With this one, a message, its answer and a look-up would need "
    "{needed} at {place}, those of its goal among them. Retire one first."
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
    """Write what the gate of this name shall say; nothing of it is in force yet. The newest version itself when it says
    the same already. `seen`: the number of the newest version that the writer knew, 0 for a new gate.

    Raises `SilasError`: 409 `gate_changed`, 422 `gate_invalid`.
    """
    require_valid(spec)
    gate = _gate_named(spec.name, deployment_id)
    _require_seen(gate, seen)
    newest = gate.versions.filter(number=gate.newest).first()
    content = content_of(spec)
    if newest is not None and (newest.content, newest.order) == (content, order):
        return newest
    return _written(gate, content, order=order, actor=actor, note=note)


def activate(gate_id: UUID, number: int, *, actor: str = "system") -> Gate:
    """Bring one version into force, from the next turn on. Raises `NotFound`, 422 `gate_invalid`, 409
    `too_many_gates`."""
    gate = lock_gate(gate_id)
    version = version_of(gate, number)
    if gate.active == number:
        return gate
    _require_gate(version)
    data = {"version": number, "before": gate.active or 0}
    return _moved(gate, version, AuditEvent.GATE_ACTIVATED, actor=actor, data=data)


def roll_back(gate_id: UUID, number: int, *, actor: str = "system", note: str = "") -> GateVersion:
    """Bring an earlier content back into force, as a new version: numbers only rise, and the way back is on record.

    Raises `NotFound`, 409 `gate_unchanged` when that version is in force, 422 `gate_invalid`.
    """
    gate = lock_gate(gate_id)
    old = version_of(gate, number)
    if gate.active == number:
        raise SilasError("gate_unchanged", "This version is in force already.", status=409)
    _require_gate(old)
    new = _written(gate, old.content, order=old.order, actor=actor, note=note, restores=number)
    data = {"version": new.number, "before": gate.active or 0, "restores": number}
    _moved(gate, new, AuditEvent.GATE_ROLLED_BACK, actor=actor, data=data)
    return new


def retire(gate_id: UUID, *, actor: str = "system") -> Gate:
    """Take the gate out of force, from the next turn on; its versions stay."""
    gate = lock_gate(gate_id)
    if gate.active is None:
        return gate
    return _moved(gate, None, AuditEvent.GATE_RETIRED, actor=actor, data={"version": gate.active})


def save_gate(
    spec: GateSpec, *, deployment_id: UUID | None = None, order: int = 100, actor: str = "system", note: str = ""
) -> Gate:
    """Write a version and bring it into force at once: for what sets up a deployment. Safe to repeat."""
    version = write_version(spec, deployment_id=deployment_id, order=order, actor=actor, note=note)
    return activate(version.gate_id, version.number, actor=actor)


def content_of(spec: GateSpec) -> dict[str, Any]:
    """What a version keeps: everything but the name, which is the gate's."""
    return {name: value for name, value in spec.to_plan_dict().items() if name != "name"}


def _gate_named(name: str, deployment_id: UUID | None) -> Gate:
    gate, _ = Gate.objects.get_or_create(deployment_id=deployment_id, name=name)
    return lock_gate(gate.pk)


def _require_seen(gate: Gate, seen: int | None) -> None:
    if seen is not None and seen != gate.newest:
        raise SilasError(
            "gate_changed",
            "Somebody has changed this gate meanwhile. Look at the newest version first; yours was not stored.",
            extra={"newest": gate.newest},
            status=409,
        )


def _written(
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


def _require_gate(version: GateVersion) -> None:
    """An old content may be no gate for the rules of today, and one gate too many would block every turn."""
    needed, place = max_gates_per_turn(version)
    if needed > MOST_EVALUATIONS:
        raise SilasError("too_many_gates", TOO_MANY.format(needed=needed, place=place), status=409)
    try:
        require_valid(version.to_spec())
    except ValueError as error:
        raise SilasError("gate_invalid", "This version is no gate that could be run.", status=422) from error


def _moved(gate: Gate, version: GateVersion | None, event: AuditEvent, *, actor: str, data: dict[str, Any]) -> Gate:
    """What is in force is sealed with the installation key: a gate that is only written blocks (queries)."""
    gate.active = version.number if version else None
    gate.status = GateStatus.ACTIVE if version else GateStatus.RETIRED
    if version is None:
        policy_seals.remove_item(PolicyKind.GATES, sealed_name(gate))
    else:
        policy_seals.seal_item(PolicyKind.GATES, sealed_name(gate), sealed_value(gate, version))
    gate.save(update_fields=["active", "status"])
    record(event, actor=actor, subject=f"gate:{gate.pk}", data=data)
    return gate
