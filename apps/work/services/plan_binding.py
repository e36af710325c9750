"""Build the plan that is bound, hashed and shown; of a model's plan only calls and prose remain.

Ids, skills by content, the skills' own checks, the customer, the budget and the mode are set by the harness (spec
5.1.2, 5.2.3; ADR 10). Plans by staff keep their checks, budgets and escalations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from apps.skills.roles import InheritedSkills
from apps.work import goal_templates, project_rules, rules
from apps.work.budgets import Budget
from apps.work.checks import checks_of
from apps.work.enums import WorkItemType
from apps.work.goal_templates import TemplateValues
from apps.work.interaction import DEFAULT_HINTS, InteractionHints, mode_for
from apps.work.plans import ProjectPlan
from apps.work.provenance import UNTRACED, Tracer, with_origins
from apps.work.schemas import WorkItemSpec
from apps.work.services import standing_tasks
from apps.work.services.approval_requests import RequestedCall, title_of
from apps.work.services.standing_tasks import ChildValues

# Fields that a plan by staff keeps beside its calls and prose. A visitor steers the model, so its plan keeps none of
# them: a check of its own can only fail, after which a refund that was paid looks unpaid and is paid again; a budget of
# one second stops between two calls; and a gate called "approved_by_phone" would stand on the card like our own.
_STAFF_FIELDS = ("budget", "gates", "escalation", "on_failure", "on_stuck")


@dataclass(frozen=True)
class Terms:
    """How a plan is bound: for which customer, as a follow-up of what, how proactive, whether staff wrote it, which
    skills the parent hands down, and how the values of its calls are traced."""

    subject: str = ""
    follow_up_of: UUID | None = None
    hints: InteractionHints = DEFAULT_HINTS
    by_staff: bool = False
    inherits: InheritedSkills = InheritedSkills()
    tracing: Tracer = UNTRACED


def bind_task(plan: WorkItemSpec, calls: Sequence[RequestedCall], terms: Terms, **fields: Any) -> WorkItemSpec:
    """Return the task as bound. A model's own checks are dropped: they could only make finished work look unfinished.
    What is put before a person needs confirmation, regardless of the mode that was asked for."""
    kept = {name: getattr(plan, name) for name in _STAFF_FIELDS} if terms.by_staff else {}
    own = checks_of([requested.tool for requested in calls])
    account = terms.tracing.origins_of([(requested.call, requested.tool) for requested in calls])
    return WorkItemSpec(
        **{
            "id": str(uuid4()),
            "type": WorkItemType.TASK,
            "title": title_of(calls),
            "domain": rules.domain_of(terms.subject),
            "interaction_mode": mode_for(terms.hints, confirm=True),
            "verify": [*(check for check in plan.verify if terms.by_staff and check not in own), *own],
            "skills": terms.inherits.to(requested.tool.skill for requested in calls),
            **_follow_up_fields(plan, terms),
            **kept,
            **fields,
            "body": with_origins(fields.get("body", plan.body), account),
        }
    )


def _follow_up_fields(plan: WorkItemSpec, terms: Terms) -> dict[str, object]:
    """A follow-up gets all files of what it follows, unless its plan names fewer (spec 5.1 step 12)."""
    if terms.follow_up_of is None:
        return {}
    return {"follow_up_of": str(terms.follow_up_of), "input_artifacts_from": list(plan.input_artifacts_from) or ["*"]}


def bind_project(
    plan: ProjectPlan, calls_by_task: Sequence[Sequence[RequestedCall]], terms: Terms
) -> tuple[WorkItemSpec, tuple[WorkItemSpec, ...]]:
    """Return the project and its tasks. The project's body ends with the hashes of its tasks, so one approval covers
    all."""
    project_id, ids = str(uuid4()), {task.id: str(uuid4()) for task in plan.tasks}
    tasks = tuple(
        bind_task(
            task,
            calls,
            terms,
            id=ids[task.id],
            parent=project_id,
            follow_up_of=None,
            depends_on=[ids[name] for name in task.depends_on],
            input_artifacts_from=[_input(name, ids) for name in task.input_artifacts_from],
        )
        for task, calls in zip(plan.tasks, calls_by_task, strict=True)
    )
    project = bind_task(
        plan.spec,
        [requested for calls in calls_by_task for requested in calls],
        terms,
        id=project_id,
        type=WorkItemType.PROJECT,
        body=project_rules.with_task_hashes(plan.spec.body, tasks),
        tasks=[task.id for task in tasks],
        verify=plan.spec.verify if terms.by_staff else [],
        budget=_budget_of(plan, tasks, terms),
    )
    return project, tasks


def _input(name: str, ids: Mapping[str, str]) -> str:
    """Replace the task in `task/file` by its bound id."""
    task, slash, file = name.partition("/")
    return f"{ids[task]}/{file}" if slash and task in ids else name


def _budget_of(plan: ProjectPlan, tasks: Sequence[WorkItemSpec], terms: Terms) -> Budget:
    """Return the budget that staff wrote; otherwise the sum of the tasks' budgets."""
    if terms.by_staff and "budget" in plan.spec.model_fields_set:
        return plan.spec.budget
    return Budget(**{name: sum(getattr(task.budget, name) for task in tasks) for name in Budget.model_fields})


def open_arguments(policy: WorkItemSpec) -> frozenset[str]:
    """Return the arguments whose values a goal's template leaves open."""
    template = goal_templates.template_call(policy.failure_context) if policy.failure_context else None
    return frozenset(name for name, value in template.args.items() if value == f"${name}") if template else frozenset()


def bind_standing_task(policy: WorkItemSpec, requested: RequestedCall, terms: Terms) -> WorkItemSpec | None:
    """Return the task that a goal's own template would start for this call; None if it would not (spec 5.2.3 step 4).

    Only the values of the call come from the model's plan.
    """
    template = goal_templates.template_call(policy.failure_context) if policy.failure_context else None
    if template is None or template.tool != requested.call.tool or set(template.args) != set(requested.call.args):
        return None
    skills = tuple(terms.inherits.to([requested.tool.skill]))
    mode = mode_for(terms.hints, confirm=False)
    return standing_tasks.child_task(
        policy, ChildValues(terms.subject, skills, TemplateValues(requested.call.args), mode)
    )
