"""The frozen input of one session, read from rows in the scope that starts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.autonomy.enums import Egress, TriggerKind
from apps.autonomy.models import AutonomousSession, Task
from apps.autonomy.queries import done_before
from apps.autonomy.schemas import ChainNext, MemoryUpdate, Notify, Silent, TaskLimits
from apps.bus.schemas import Lease
from apps.gates.enums import GateTrigger
from apps.gates.queries import active_gates
from apps.gates.schemas import GateSpec
from apps.guard.models import GuardedRun
from apps.guard.schemas import RunRef
from apps.releases.served import live_settings
from apps.skills import outside_tools, roles
from apps.skills import queries as skills
from apps.skills.models import SkillVersion
from apps.skills.schemas import ToolSpec
from llm.briefing import SkillBrief
from llm.enums import Role
from llm.keys import ProviderKeys
from llm.models import GROUNDED

# Only public knowledge: a session has no visitor whose identity was verified.
LEVELS = ("public",)


@dataclass(frozen=True)
class Job:
    """One session, ready to run outside of any scope.

    `skill_briefs`: what its skills say, as a planner reads it; `done`: what earlier sessions of the occasion did, by
    phase; `gates` check what its models read, `call_gates` judge a tool call that a model chose before it is made.
    """

    tenant_id: UUID
    session_id: UUID
    task_id: UUID
    owner_id: UUID | None
    task_name: str
    title: str
    playbook: str
    prompt: str
    context: str
    params: Mapping[str, Any]
    run: RunRef
    skills: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    skill_briefs: tuple[SkillBrief, ...]
    model_name: str
    keys: ProviderKeys
    limits: TaskLimits
    route: Silent | Notify | MemoryUpdate | ChainNext
    escalates: bool
    delegates: Mapping[str, UUID]
    deployment_id: UUID
    done: Mapping[str, Mapping[str, Any]]
    gates: tuple[GateSpec, ...] = ()
    call_gates: tuple[GateSpec, ...] = ()
    egress: Egress = Egress.ANONYMOUS


def build_job(session: AutonomousSession, lease: Lease) -> Job:
    """The job of a session that has just started. Raises `SilasError("skill_missing")`."""
    task = session.task
    assert session.run_id is not None
    installed = skills.versions(task.skills)
    gates = active_gates(task.deployment_id).value
    model_name = task.model_name or live_settings(task.deployment).model_for(Role.PLANNER)
    stays = session.egress == Egress.NOTHING
    is_part = session.trigger_kind == TriggerKind.DELEGATED and "collects" not in session.params
    return Job(
        tenant_id=session.tenant_id,
        session_id=session.pk,
        task_id=task.pk,
        owner_id=task.owner_id,
        task_name=task.name,
        title=task.deployment.title,
        playbook=task.playbook,
        prompt=task.prompt,
        context=session.context,
        params=session.params,
        run=RunRef(session.tenant_id, session.run_id, lease.ref),
        skills=tuple(task.skills),
        tools=tuple(
            tool
            for tool in _tools(task, installed)
            if _is_granted(session.run, tool.name) and not (stays and (tool.leaves or tool.is_outside))
        ),
        skill_briefs=roles.planner_view(roles.active_skills_of(installed)),
        model_name=GROUNDED if stays else model_name,
        keys=task.deployment.keys,
        limits=session.frozen_limits,
        # A delegated session delivers nothing: its parent's collecting session does.
        route=Silent() if is_part else task.result_route,
        escalates=task.escalates_to_id is not None,
        delegates=_delegates(session),
        deployment_id=task.deployment_id,
        done=done_before(session),
        gates=tuple(gate for gate in gates if gate.on == GateTrigger.ON_CONTENT),
        call_gates=tuple(gate for gate in gates if gate.on == GateTrigger.ON_TOOL_CALL),
        egress=Egress(session.egress),
    )


def _tools(task: Task, installed: Iterable[SkillVersion]) -> tuple[ToolSpec, ...]:
    """The tools that only read: those of its skills, and the built-in ones."""
    core = outside_tools.web_search_tool(task.deployment_id)
    return outside_tools.with_builtin_tools(
        (tool for tool in skills.tools_from(installed, task.skills) if not tool.acting), core
    )


def _is_granted(run: GuardedRun | None, tool: str) -> bool:
    """Whether the guard would admit the tool: a model is not offered what would be refused."""
    return run is not None and (run.allow is None or tool in run.allow) and tool not in run.deny


def _delegates(session: AutonomousSession) -> dict[str, UUID]:
    """The tasks to which the planner may delegate, by name; none for a session that was delegated itself."""
    if session.trigger_kind == TriggerKind.DELEGATED or not session.task.delegates_to:
        return {}
    rows = Task.objects.filter(pk__in=session.task.delegates_to, deleted_at=None, quarantined_at=None)
    return dict(rows.values_list("name", "pk"))
