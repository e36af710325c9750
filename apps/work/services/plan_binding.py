"""What of a plan is bound, hashed and shown? The harness writes it anew; of a model's plan only calls and prose remain.

Ids, skills by content, the skills' own checks, the customer, the budget and the mode are the house's (spec 5.1.2,
5.2.3; ADR 0010, 0013). Staff may say more: checks, budgets and escalations of a plan of theirs are kept.
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

# What a plan of staff's own keeps beside its calls and its prose.
_KEPT = ("budget", "gates", "escalation", "on_failure", "on_stuck")


@dataclass(frozen=True)
class Terms:
    """Under which a plan is bound: for whom, as what follow-up, how forward, whether staff wrote it, which skills its
    parent has to hand down, and what the values of its calls are traced with."""

    subject: str = ""
    follow_up_of: UUID | None = None
    wish: InteractionHints = DEFAULT_HINTS
    by_staff: bool = False
    inherits: InheritedSkills = InheritedSkills()
    tracing: Tracer = UNTRACED


def bind_task(plan: WorkItemSpec, wanted: Sequence[RequestedCall], terms: Terms, **fields: Any) -> WorkItemSpec:
    """The task as it may stand: a model's own checks could only make what was done look undone. What is put before a
    person is confirmed, whatever mode anybody wished for."""
    kept = {name: getattr(plan, name) for name in _KEPT} if terms.by_staff else {}
    own = checks_of([each.tool for each in wanted])
    account = terms.tracing.account([(each.call, each.tool) for each in wanted])
    return WorkItemSpec(
        **{
            "id": str(uuid4()),
            "type": WorkItemType.TASK,
            "title": title_of(wanted),
            "domain": rules.domain_of(terms.subject),
            "interaction_mode": mode_for(terms.wish, confirm=True),
            "verify": [*(check for check in plan.verify if terms.by_staff and check not in own), *own],
            "skills": terms.inherits.to(each.tool.skill for each in wanted),
            **_linked(plan, terms),
            **kept,
            **fields,
            "body": with_origins(fields.get("body", plan.body), account),
        }
    )


def _linked(plan: WorkItemSpec, terms: Terms) -> dict[str, Any]:
    """A follow-up has all files of what it follows, unless its plan names fewer (spec 5.1 step 12)."""
    if terms.follow_up_of is None:
        return {}
    return {"follow_up_of": str(terms.follow_up_of), "input_artifacts_from": list(plan.input_artifacts_from) or ["*"]}


def bind_project(
    plan: ProjectPlan, wanted: Sequence[Sequence[RequestedCall]], terms: Terms
) -> tuple[WorkItemSpec, tuple[WorkItemSpec, ...]]:
    """The project and its tasks. The project's body ends with the hashes of its tasks, so one yes covers them all."""
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
        for task, calls in zip(plan.tasks, wanted, strict=True)
    )
    project = bind_task(
        plan.spec,
        [each for calls in wanted for each in calls],
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
    """`task/file` names a file of one task; the task gets the id that the house gave it."""
    task, slash, file = name.partition("/")
    return f"{ids[task]}/{file}" if slash and task in ids else name


def _budget_of(plan: ProjectPlan, tasks: Sequence[WorkItemSpec], terms: Terms) -> Budget:
    """What staff wrote for the whole; otherwise what its tasks may use together."""
    if terms.by_staff and "budget" in plan.spec.model_fields_set:
        return plan.spec.budget
    return Budget(**{name: sum(getattr(task.budget, name) for task in tasks) for name in Budget.model_fields})


def open_arguments(policy: WorkItemSpec) -> frozenset[str]:
    """The arguments of which a goal's template leaves the value open."""
    template = goal_templates.template_call(policy.failure_context) if policy.failure_context else None
    return frozenset(name for name, value in template.args.items() if value == f"${name}") if template else frozenset()


def bind_standing_task(policy: WorkItemSpec, wanted: RequestedCall, terms: Terms) -> WorkItemSpec | None:
    """The task that a goal's own template would start for this call; None when it would not (spec 5.2.3 step 4).

    Nothing of the model's plan is in it but the values of the call.
    """
    template = goal_templates.template_call(policy.failure_context) if policy.failure_context else None
    if template is None or template.tool != wanted.call.tool or set(template.args) != set(wanted.call.args):
        return None
    skills = tuple(terms.inherits.to([wanted.tool.skill]))
    mode = mode_for(terms.wish, confirm=False)
    return standing_tasks.child_task(policy, ChildValues(terms.subject, skills, TemplateValues(wanted.call.args), mode))
