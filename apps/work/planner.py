"""How is a planner asked for help? A model run between admit and settle, outside of every scope, in a worker.

The consumers of `consult_planner`, `replan_request` and `planner_guidance`. A planner acts on nothing: its tools read,
and ask for research (spec 19.4; contract silas 15).
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from pydantic_ai.toolsets import AbstractToolset

from apps.bus.deliveries import Delivery
from apps.guard import services as guard
from apps.guard.enums import Intent
from apps.guard.schemas import Admitted, Call
from apps.work import cascade, plans
from apps.work.enums import Waiting
from apps.work.planner_tools import PlannerTools
from apps.work.services import drafts, failure_handling, planning, replacement_plans, research
from apps.work.services.drafts import RewordingJob
from apps.work.services.follow_ups import FollowUpJob
from apps.work.services.planning import PlanningJob
from kernel.errors import SilasError
from kernel.llm.agents import AgentRun, run_planner
from kernel.llm.models import is_builtin
from kernel.llm.pricing import estimate_usage
from kernel.llm.schemas import AgentResponse
from kernel.tenancy import in_scope

_LONGEST_ADVICE = 4000


async def answer_question(delivery: Delivery) -> None:
    """Advise, or plan anew. What the planner cannot be paid for is no advice and no plan."""
    job = await in_scope(delivery.tenant_id, planning.open_job, delivery.message)
    if job is not None:
        await run_planning_job(delivery, job)


async def run_planning_job(delivery: Delivery, job: PlanningJob) -> None:
    """Questions come before an answer: who asks is asked again when the answers are in."""
    started, notebook = time.monotonic(), PlannerTools(job.room, job.known)
    answer = await _asked(job, notebook)
    seconds = round(time.monotonic() - started, 3)
    if notebook.questions:
        await in_scope(delivery.tenant_id, research.send_questions, delivery, job, notebook.questions)
    elif job.planning.purpose == Waiting.GUIDANCE:
        advice = answer.message[:_LONGEST_ADVICE] if answer else ""
        await in_scope(delivery.tenant_id, planning.send_advice, delivery, job, advice, seconds=seconds)
    else:
        tried = await in_scope(delivery.tenant_id, replacement_plans.tried_plans, job.item)
        plan = _other_plan(answer, tried)
        await in_scope(delivery.tenant_id, planning.submit_plan, delivery, job, plan, seconds=seconds)


async def _asked(job: PlanningJob, notebook: PlannerTools) -> AgentResponse | None:
    run = await paid_run(job, notebook.toolset(job))
    return run.output if run else None


async def paid_run(
    job: PlanningJob | RewordingJob | FollowUpJob, toolset: AbstractToolset[Any] | None = None
) -> AgentRun[AgentResponse] | None:
    """One run of the planner's model between admit and settle; None when it cannot be paid for."""
    asked = Call(tool="planner", forecast=estimate_usage(job.briefing), model=job.model_name)
    admitted = await in_scope(job.run.tenant_id, guard.admit, job.run, Intent.CONVERSE, asked)
    if not isinstance(admitted, Admitted):
        return None
    key = job.keys.of(job.model_name)
    run = await run_planner(job.model_name, job.briefing, toolset=toolset, key=key)
    await in_scope(job.run.tenant_id, guard.charge, admitted, run.usage)
    return run


def _other_plan(answer: AgentResponse | None, tried: list[tuple[plans.PlannedCall, ...]]) -> str:
    """The plan, if it is one and would really do something else; else ""."""
    markdown = (answer.plan_action.plan_markdown or "") if answer and answer.plan_action else ""
    try:
        calls = plans.parse(markdown).calls if markdown else ()
    except SilasError:
        return ""
    return markdown if cascade.is_different(calls, tried) else ""


async def take_guidance(delivery: Delivery) -> None:
    """`planner_guidance` on the runtime queue: whoever still waits for it goes on."""
    message = delivery.message
    assert isinstance(message.task_id, UUID) and message.payload is not None
    await delivery.commit(
        failure_handling.take_guidance, message.task_id, answers=message.payload["answers"], text=message.content
    )


async def reword_draft(delivery: Delivery) -> None:
    """Have the planner reword a draft; the new text goes on another card and has no effect by itself (spec 8.2).

    The text stays as it was where no model can be asked, or another than the deployment's own answered.
    """
    job = await in_scope(delivery.tenant_id, drafts.open_job, delivery.message)
    if job is None:
        return
    started = time.monotonic()
    run = None if is_builtin(job.model_name) else await paid_run(job)
    text = "" if run is None or run.fell_back else run.output.message.strip()
    await delivery.commit(drafts.open_reworded_card, job, text, seconds=round(time.monotonic() - started, 3))
