"""Ask the planner for help: a model run between admit and settle, outside of every scope, in a worker.

Handlers of `consult_planner`, `replan_request` and `planner_guidance`. A planner cannot act: its tools read and request
research (spec 19.4; contract silas 15).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

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
from kernel.tenancy import in_scope
from llm.agents import AgentRun, run_planner
from llm.models import is_builtin
from llm.pricing import estimate_usage
from llm.schemas import AgentResponse

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

_LONGEST_ADVICE = 4000


async def answer_question(delivery: Delivery) -> None:
    """Handle a request for advice or another plan. Without budget for the planner there is no advice and no plan."""
    job = await in_scope(delivery.tenant_id, planning.open_job, delivery.message)
    if job is not None:
        await run_planning_job(delivery, job)


async def run_planning_job(delivery: Delivery, job: PlanningJob) -> None:
    """Run the planner. Its research questions come before an answer: it is asked again when the results are in."""
    started, tools = time.monotonic(), PlannerTools(job.room, job.known)
    run = await paid_run(job, tools.toolset(job))
    answer = run.output if run else None
    seconds = round(time.monotonic() - started, 3)
    if tools.questions:
        await in_scope(delivery.tenant_id, research.send_questions, delivery, job, tools.questions)
    elif job.planning.purpose == Waiting.GUIDANCE:
        advice = answer.message[:_LONGEST_ADVICE] if answer else ""
        await in_scope(delivery.tenant_id, planning.send_advice, delivery, job, advice, seconds=seconds)
    else:
        tried = await in_scope(delivery.tenant_id, replacement_plans.tried_plans, job.item)
        plan = _other_plan(answer, tried)
        await in_scope(delivery.tenant_id, planning.submit_plan, delivery, job, plan, seconds=seconds)


async def paid_run(
    job: PlanningJob | RewordingJob | FollowUpJob, toolset: AbstractToolset[Any] | None = None
) -> AgentRun[AgentResponse] | None:
    """Run the planner's model once between admit and settle; None when it cannot be paid for."""
    call = Call(tool="planner", forecast=estimate_usage(job.briefing), model=job.model_name)
    admitted = await in_scope(job.run.tenant_id, guard.admit, job.run, Intent.CONVERSE, call)
    if not isinstance(admitted, Admitted):
        return None
    key = job.keys.of(job.model_name)
    run = await run_planner(job.model_name, job.briefing, toolset=toolset, key=key)
    await in_scope(job.run.tenant_id, guard.charge, admitted, run.usage)
    return run


def _other_plan(answer: AgentResponse | None, tried: list[tuple[plans.PlannedCall, ...]]) -> str:
    """Return the plan if it is valid and makes other calls than those tried; else ""."""
    markdown = (answer.plan_action.plan_markdown or "") if answer and answer.plan_action else ""
    try:
        calls = plans.parse(markdown).calls if markdown else ()
    except SilasError:
        return ""
    return markdown if cascade.is_different(calls, tried) else ""


async def take_guidance(delivery: Delivery) -> None:
    """Handle `planner_guidance` on the runtime queue: resume the item if it still waits for this answer."""
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
