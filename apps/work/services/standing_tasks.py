"""Build the task that a goal's standing approval covers, and rebuild it to judge one that asks to run.

Always holds: a child's own typed values are its id, customer, mode, a selection of the goal's skills, the arguments of
its call, and what failed. Everything else comes from the goal and its skills, so comparing two hashes compares every
field of the plan, no matter who wrote the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from apps.approvals.tokens.schemas import Approvable
from apps.work import goal_templates, plans, rules
from apps.work.budgets import Budget
from apps.work.checks import checks_of
from apps.work.enums import WorkItemType
from apps.work.goal_templates import TemplateValues
from apps.work.models import WorkItem
from apps.work.schemas import VerificationReport, WorkItemSpec
from apps.work.services import screening
from apps.work.services.approval_requests import title_of
from kernel.errors import SilasError
from llm.enums import InteractionMode


@dataclass(frozen=True)
class ChildValues:
    """The values in which two children of one goal may differ."""

    subject: str
    skills: tuple[str, ...]
    filling: TemplateValues
    interaction_mode: InteractionMode = InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED
    id: str = ""


def child_task(policy: WorkItemSpec, values: ChildValues) -> WorkItemSpec | None:
    """Return the task that the goal `policy` starts for these values; None if they do not fit its template.

    Raises `SilasError`: tool_not_granted, bad_arguments, hidden_characters, bad_template, skill_missing.
    """
    body = goal_templates.fill(policy.failure_context, values.filling) if policy.failure_context else None
    if body is None:
        return None
    calls = screening.resolve_calls(plans.parse_calls(body), screening.tools_in(policy.skills))
    tools = [requested.tool for requested in calls]
    # The goal bounds the skills, or a child could bring one that was not approved.
    if not {tool.skill for tool in tools} <= set(values.skills) <= set(policy.skills):
        return None
    own = [check for check in checks_of(tools) if check not in policy.verify]
    # A goal may ask for less than usual, never for more.
    default = Budget()
    return WorkItemSpec(
        id=values.id or str(uuid4()),
        type=WorkItemType.TASK,
        title=title_of(calls),
        parent=policy.id,
        spawned_by=policy.id,
        domain=rules.domain_of(values.subject),
        budget=Budget(
            **{name: min(getattr(policy.budget, name), getattr(default, name)) for name in Budget.model_fields}
        ),
        body=body,
        interaction_mode=values.interaction_mode,
        verify=[*policy.verify, *own],
        gates=policy.gates,
        skills=list(dict.fromkeys(values.skills)),
        escalation=policy.escalation,
        on_failure=policy.on_failure,
    )


def approvable_child(item: WorkItem, goal: WorkItem) -> Approvable:
    """Return what the item asks to run under its goal's standing approval."""
    return replace(item.spec.approvable(goal.spec), rendered_hash=_rendered_hash(item, goal.spec))


def failure_line(report: VerificationReport) -> str:
    """Return names and reasons of the failed checks; never their output, which outsiders may have written."""
    return goal_templates.one_line("; ".join(f"{result.name} ({result.reason})" for result in report.failed))


def _rendered_hash(item: WorkItem, policy: WorkItemSpec) -> str:
    """Return the hash of the task rebuilt from the item's own values, or "" if they do not fit."""
    spec = item.spec
    filling = goal_templates.values_in(policy.failure_context or "", spec.body)
    if filling is None:
        return ""
    try:
        # In its one spelling: another text for the same id would hash differently.
        own_id = str(UUID(spec.id))
        mode = InteractionMode(spec.interaction_mode)
        rendered = child_task(policy, ChildValues(item.subject, tuple(spec.skills), filling, mode, own_id))
    except (SilasError, ValueError):
        return ""
    return rendered.plan_hash if rendered else ""
