"""List what each of the eight scopes binds, and where its approval is spent and checked. This is the only such list.

| scope | an approval binds exactly | spent by `verify_token` at | checked by `check_token` at |
|---|---|---|---|
| full_plan | the 23 fields of a task or project | its decision (5.1.2 step 6) | execution entry (5.2.1 step 0) |
| standing | the 23 fields of a goal, its template | each child (5.2.3 step 4) | the child's entry (5.2.1 step 0) |
| single_step | one call of a plan, or what gates hold back | its decision (5.2.1 c2) | before exactly that continues |
| skill_install | skill, content, validation report | its activation (10.4 step 4) | - |
| budget | item, plan, budget before and after | the raise (5.2.1 step 1) | - |
| connection_act | one batch of a goal, or its undoing | its decision (5.2.4 step 4) | before it is carried out |
| connection_manage | connection, operation, rights before and after | the change (5.10.2) | - |
| autonomy_threshold | the exact ordered changes and their evidence | the change (5.1.6) | - |

`-`: what is approved happens in the transaction that spends the approval. A payload has exactly the keys of its shape;
the value under `subject` becomes the token's `work_item_id`. Rooms build payloads with `payloads`, which checks them
against this table (spec 5.11, contract silas 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.approvals.enums import ApprovalScope

PLAN_FIELDS: tuple[str, ...] = (
    "id",
    "type",
    "title",
    "parent",
    "spawned_by",
    "follow_up_of",
    "domain",
    "agent",
    "budget",
    "body",
    "interaction_mode",
    "input_artifacts_from",
    "verify",
    "gates",
    "skills",
    "access_levels",
    "escalation",
    "schedule",
    "on_failure",
    "on_stuck",
    "failure_context",
    "tasks",
    "depends_on",
)


@dataclass(frozen=True)
class Shape:
    """The exact keys of a payload, and the one that names its subject."""

    keys: frozenset[str]
    subject: str


def _shape(subject: str, *others: str) -> Shape:
    return Shape(frozenset({subject, *others}), subject)


PLAN = Shape(frozenset(PLAN_FIELDS), "id")
STEP = _shape("work_item_id", "plan_hash", "step", "tool", "args")
GATE_PASS = _shape("pause_id", "trigger", "gates", "holds")
SKILL = _shape("skill", "content_hash", "report_hash")
BUDGET = _shape("work_item_id", "plan_hash", "before", "after")
BATCH = _shape("goal_id", "action", "item_ids", "count")
CONNECTION_CHANGE = _shape("connection_id", "operation", "before", "after")
AUTONOMY = _shape("scope_id", "goal_id", "changes", "sample_size", "correction_rate", "evidence_window")

SHAPES: Mapping[ApprovalScope, tuple[Shape, ...]] = {
    ApprovalScope.FULL_PLAN: (PLAN,),
    ApprovalScope.STANDING: (PLAN,),
    ApprovalScope.SINGLE_STEP: (STEP, GATE_PASS),
    ApprovalScope.SKILL_INSTALL: (SKILL,),
    ApprovalScope.BUDGET: (BUDGET,),
    ApprovalScope.CONNECTION_ACT: (BATCH,),
    ApprovalScope.CONNECTION_MANAGE: (CONNECTION_CHANGE,),
    ApprovalScope.AUTONOMY_THRESHOLD: (AUTONOMY,),
}
