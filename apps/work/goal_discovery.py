"""Run the reading calls of a goal's plan through the guard to discover what could be done (spec 5.1.5).

A script answers `{"found": [...]}`, each entry with the call it proposes and its confidence; invalid entries are left
out. Nothing found runs: the candidates are queued for a process that may open cards (`services.candidates`). In a
worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, Done, Limits, RunRef
from apps.skills.schemas import ToolSpec
from apps.work.models import WorkItem
from apps.work.queries import work_item
from apps.work.services.candidates import MAX_CANDIDATES, Candidate
from apps.work.services.screening import tools_in
from kernel.errors import SilasError
from kernel.provenance import Origin as From
from kernel.provenance import Source, Sources, Traced, as_text
from kernel.tenancy import in_scope
from llm.calls import PlannedCall


@dataclass(frozen=True)
class _Search:
    run: RunRef
    calls: tuple[PlannedCall, ...]
    tools: Mapping[str, ToolSpec]
    context: Mapping[str, Any]


async def find_candidates(tenant_id: UUID, goal_id: UUID) -> list[dict[str, object]]:
    """Return what the goal's calls found, as plain values; empty for a goal without calls."""
    search = await in_scope(tenant_id, _begin, goal_id)
    if search is None:
        return []
    found: list[dict[str, object]] = []
    for call in search.calls:
        tool = search.tools.get(call.tool)
        request = Call(
            call.tool,
            call.args,
            frozenset({call.tool}),
            estimate=tool.estimate if tool else None,
            leaves=bool(tool and tool.leaves),
            shown=Sources((Source(Traced(From.AUTHOR), as_text(call.args)),)),
        )
        intent = tool.via if tool else Intent.RUN_SKILL
        outcome = await guard.guarded_call(search.run, intent, request, context=search.context)
        found += _read(outcome.value) if isinstance(outcome, Done) else []
    await in_scope(
        tenant_id, guard.close_run, search.run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED
    )
    return found[:MAX_CANDIDATES]


def _begin(goal_id: UUID) -> _Search | None:
    goal: WorkItem = work_item(goal_id)
    spec = goal.spec
    if not spec.calls:
        return None
    limits = Limits(cost_usd=str(spec.budget.max_cost_usd), tokens=spec.budget.max_tokens)
    tools = {call.tool for call in spec.calls}
    run = guard.open_run(
        Origin.WORK, goal.pk, deployment_id=goal.deployment_id, phase=Phase.EXECUTION, allow=tools, limits=limits
    )
    context = {"skills": tuple(spec.skills), "customer": "", "house": True}
    return _Search(run.ref, spec.calls, _tools(spec.skills), context)


def _tools(refs: Sequence[str]) -> Mapping[str, ToolSpec]:
    """Empty if a skill is missing: its calls then fail by themselves."""
    try:
        return tools_in(refs)
    except SilasError:
        return {}


def _read(value: object) -> list[dict[str, object]]:
    listed: Sequence[object] = value.get("found", ()) if isinstance(value, Mapping) else ()
    candidates_ = []
    for entry in listed if isinstance(listed, list) else ():
        try:
            candidates_.append(Candidate.model_validate(entry).model_dump(mode="json"))
        except ValidationError:
            continue
    return candidates_
