"""Build the payloads that approvals bind, and hash them.

Every room that needs an approval hashes here (spec 5.11, contract silas 5.6 and 8): equal meaning gives equal bytes,
list order counts, and a payload that would come back changed from the database is refused before it can be approved.
Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apps.approvals.enums import ApprovalScope
from apps.approvals.tokens.schemas import Approvable, GatePass, SpawnPolicy
from apps.approvals.tokens.scopes import PLAN, PLAN_FIELDS, SHAPES
from kernel.canonical import canonical_json, sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

# jsonb keeps numbers as decimals: from here up a float comes back as an integer and hashes differently.
_FLOAT_LIMIT = 1e16
_INTEGER_LIMIT = 2**63
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def plan_projection(plan: Mapping[str, object]) -> dict[str, object]:
    """Return the 23 hashed fields of a work item dump (contract silas 5.5)."""
    missing = [name for name in PLAN_FIELDS if name not in plan]
    if missing:
        raise SilasError(
            ErrorCode.PAYLOAD_INCOMPLETE,
            extra={"missing": missing},
        )
    return {name: plan[name] for name in PLAN_FIELDS}


def plan_hash(plan: Mapping[str, object]) -> str:
    return payload_hash(plan_projection(plan))


def approvable_plan(plan: Mapping[str, Any], *, goal: Approvable | None = None) -> Approvable:
    """Convert a work item dump. `goal` is the parent whose standing approval may cover it."""
    return Approvable(
        id=plan["id"],
        plan_hash=plan_hash(plan),
        parent_id=plan["parent"],
        body=plan["body"],
        policy=SpawnPolicy.model_validate({name: plan[name] for name in SpawnPolicy.model_fields}),
        goal=goal,
    )


def approvable(scope: ApprovalScope, payload: Mapping[str, object]) -> Approvable:
    """Convert the payload of any scope. Raises `SilasError("payload_shape")` unless it has exactly the keys that an
    approval of the scope binds (`scopes.SHAPES`)."""
    shape = next((shape for shape in SHAPES[scope] if set(payload) == shape.keys), None)
    if shape is None or not payload[shape.subject]:
        raise SilasError(
            ErrorCode.PAYLOAD_SHAPE,
            extra={"scope": scope},
        )
    if shape is PLAN:
        return approvable_plan(payload)
    return Approvable(id=str(payload[shape.subject]), plan_hash=payload_hash(payload))


def batch_payload(*, goal_id: str, action: str, item_ids: Sequence[str]) -> dict[str, object]:
    """Return the payload of a reviewed batch. The order of the items is bound, `batch_id` is not (contract silas 8)."""
    if len(set(item_ids)) != len(item_ids) or not all(isinstance(item, str) for item in item_ids):
        raise SilasError(ErrorCode.BATCH_ITEMS)
    return {"goal_id": goal_id, "action": action, "item_ids": list(item_ids), "count": len(item_ids)}


def tool_call_payload(tool: str, args: Mapping[str, object]) -> dict[str, object]:
    """Return the payload of one call, which the guard's digests hash (`guard.schemas.call_digest`)."""
    return {"tool": tool, "args": dict(args)}


def call_payload(
    tool: str, args: Mapping[str, object], *, work_item_id: str, plan_hash: str, step: int
) -> dict[str, object]:
    """Return the `single_step` payload of one call of a plan that was paused for approval (spec 5.2.1 c2)."""
    return {"work_item_id": work_item_id, "plan_hash": plan_hash, "step": step, **tool_call_payload(tool, args)}


def gate_payload(
    pause_id: str, trigger: str, gates: Sequence[Mapping[str, object]], holds: Mapping[str, object]
) -> dict[str, Any]:
    """Return the `single_step` payload of what gates hold back at one trigger, for one pause."""
    return {"pause_id": pause_id, "trigger": trigger, "gates": [dict(gate) for gate in gates], "holds": dict(holds)}


def autonomy_payload(
    *,
    scope_id: str,
    goal_id: str | None,
    changes: Sequence[Mapping[str, object]],
    sample_size: int,
    correction_rate: float,
    evidence_window: str,
) -> dict[str, object]:
    """Return the `autonomy_threshold` payload: ordered changes with the evidence for them (contract silas 8)."""
    return {
        "scope_id": scope_id,
        "goal_id": goal_id,
        "changes": [dict(change) for change in changes],
        "sample_size": sample_size,
        "correction_rate": correction_rate,
        "evidence_window": evidence_window,
    }


def has_passed_gate(passes: Iterable[GatePass], *, trigger: str, gate: str, holds: Mapping[str, object]) -> bool:
    """True if a person has approved exactly this content at this gate."""
    matching = [gate_pass for gate_pass in passes if gate_pass.trigger == trigger and gate in gate_pass.gates]
    return any(gate_pass.content_hash == payload_hash(holds) for gate_pass in matching)


def payload_hash(payload: Mapping[str, object]) -> str:
    _require_stable(payload)
    return sha256_hex(canonical_json(payload))


def _require_stable(value: object) -> None:
    """Refuse what JSON or jsonb would change on the way: the stored payload must hash like the approved one."""
    if isinstance(value, Mapping):
        # JSON would turn another key into text, and two different payloads into the same bytes.
        if not all(isinstance(key, str) for key in value):
            raise SilasError(ErrorCode.PAYLOAD_NOT_CANONICAL, gettext("The payload has a key that is not text."))
        for part in (*value.values(), *value.keys()):
            _require_stable(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _require_stable(part)
    elif not _is_stable(value):
        raise SilasError(ErrorCode.PAYLOAD_NOT_CANONICAL, gettext("The payload contains a value that can't be signed."))


def _is_stable(value: object) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is None
    if isinstance(value, int):
        return abs(value) < _INTEGER_LIMIT
    if not isinstance(value, float):
        return False
    # A decimal has no minus zero, so that it would come back as 0 and hash differently.
    minus_zero = value == 0 and math.copysign(1.0, value) < 0
    return math.isfinite(value) and abs(value) < _FLOAT_LIMIT and not minus_zero
