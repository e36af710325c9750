"""Answer a planner's question by an executor in research mode, which can only read.

Its tools are restricted to the allow-list here, at run time, regardless of message and model; there is no approval, so
the guard refuses acting calls too. Tool-call gates apply. Handlers of `research_request` and `research_result`, in a
worker (spec 19.5.1; contract silas 15).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from apps.bus.deliveries import Delivery
from apps.guard import services as guard
from apps.guard.enums import Intent
from apps.guard.offered_tools import OfferedTool
from apps.guard.schemas import Admitted, Call
from apps.work import research_rules as rules
from apps.work.attempt_jobs import as_offered_tool
from apps.work.services import research
from apps.work.services.research import Answer, ResearchJob
from kernel.provenance import Origin, Source, Traced
from kernel.tenancy import in_scope
from llm.agents import Limits, run_executor
from llm.loading import loaded
from llm.pricing import estimate_usage

# The tools of research runs, besides the web search where it is set up.
READS_KNOWLEDGE = OfferedTool(
    "memory_search",
    "Search the company's knowledge. Returns passages with their documents.",
    {"type": "object", "properties": {"query": {"type": "string", "maxLength": 1000}}, "required": ["query"]},
    intent=Intent.RETRIEVE_CHUNKS,
)
_READS_FILES = OfferedTool(
    "read_file",
    "Read one of the files of this work, by its name.",
    {"type": "object", "properties": {"path": {"type": "string", "maxLength": 400}}, "required": ["path"]},
    intent=Intent.READ_FILE,
)
OFFERED = (READS_KNOWLEDGE, _READS_FILES)
_LIMITS = Limits(requests=8, tool_calls=8)


async def answer_question(delivery: Delivery) -> None:
    """Handle one `research_request`. One that was answered before, or comes too late, is acknowledged and ignored."""
    job = await in_scope(delivery.tenant_id, research.open_job, delivery)
    if job is None:
        return
    try:
        async with asyncio.timeout(job.seconds_left):
            answer = await _research(job)
    except TimeoutError:
        answer = Answer(error="timeout")
    await in_scope(delivery.tenant_id, research.send_answer, delivery, job, answer)


async def record_result(delivery: Delivery) -> None:
    """Handle `research_result` on the planner's queue: the planner continues when the last one is in."""
    await delivery.commit(research.record_answer, delivery.message)


async def _research(job: ResearchJob) -> Answer:
    await loaded()
    from apps.guard.toolset import GuardedToolset

    call = Call(tool="researcher", forecast=estimate_usage(job.briefing), model=job.model_name)
    admitted = await in_scope(job.run.tenant_id, guard.admit, job.run, Intent.CONVERSE, call)
    if not isinstance(admitted, Admitted):
        return Answer(error="budget_exceeded")
    context = {"levels": ("public",), "work_item": job.item_id, "turn": job.request_id}
    offered = (*OFFERED, *map(as_offered_tool, job.web))
    private = (Source(Traced(Origin.RECORDS), job.values),)
    guarded = GuardedToolset(job.run, offered, rules.clamp_tools(job.tools), job.gates, context, asked=private)
    toolset = guarded.chained()
    limits = replace(_LIMITS, max_tokens=job.max_tokens)
    key = job.keys.of(job.model_name)
    run = await run_executor(job.model_name, job.briefing, toolset=toolset, key=key, limits=limits)
    await in_scope(job.run.tenant_id, guard.charge, admitted, run.usage)
    return (
        Answer(error="tool_failure")
        if run.last_error
        else Answer(rules.truncate_answer(run.output.summary, job.max_tokens))
    )
