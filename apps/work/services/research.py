"""Store the state of a planner's research: sent, answered in time, or late; the scopes around a run (spec 19.4.1).

planning → awaiting_research → ready_to_finalize → planning, or expired → planning with what has come. At most three
questions at once and five rounds; equal questions are one; a late answer is audited and not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import FailureCode, Kind, Queue, Sender
from apps.bus.models import QueueMessage
from apps.bus.schemas import ErrorPayload, ResearchConstraints
from apps.bus.schemas import ResearchRequest as Request
from apps.bus.schemas import ResearchResult as Result
from apps.gates.schemas import GateSpec
from apps.guard.schemas import RunRef
from apps.skills import outside_tools
from apps.skills.schemas import ToolSpec
from apps.work import artifact_reader, pool, research_rules
from apps.work.attempt_jobs import gates_of, keys_of, model_name
from apps.work.enums import PlanningState, ResearchState, SlotKind
from apps.work.locks import lock_course, lock_item
from apps.work.models import Planning, ResearchRequest, WorkItem
from apps.work.services import completion, execution_queue, failure_handling, planning, wait_state
from kernel.clock import now
from kernel.provenance import as_text
from kernel.taint import Taint
from llm.briefing import Briefing, ToolBrief
from llm.calls import PlannedCall, call_block
from llm.enums import Role
from llm.keys import ProviderKeys

_INSTRUCTION = (
    "Find out what is asked, from what the tools return and from nothing else. You cannot change anything. Answer in"
    " `summary`, in the form that is asked for, as short as you can; say plainly what you could not find."
)


@dataclass(frozen=True)
class Question:
    """One thing that a planner wants to know."""

    task: str
    return_format: str
    max_tokens: int

    @property
    def key(self) -> str:
        return research_rules.dedupe_key(self.task, self.return_format, self.max_tokens)


@dataclass(frozen=True)
class Answer:
    """The answer: a text, or an error's code."""

    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class ResearchJob:
    """One question, ready to be researched outside of any scope. `tools`: what the message allows; it is clamped.
    `values`: the plan's values, which belong to a customer and must not leave."""

    request_id: UUID
    item_id: UUID
    run: RunRef
    tools: tuple[str, ...]
    gates: tuple[GateSpec, ...]
    briefing: Briefing
    model_name: str
    keys: ProviderKeys
    max_tokens: int
    seconds_left: float
    web: tuple[ToolSpec, ...] = ()
    values: str = ""


def send_questions(delivery: Delivery, job: planning.PlanningJob, questions: Sequence[Question]) -> None:
    """Send the questions and let the planner wait; its delivery is over, and no thread is held."""
    course, plan = lock_course(lock_item(job.item.pk)), job.planning
    plan.rounds += 1
    planning.move_planning(plan, PlanningState.AWAITING_RESEARCH)
    for question in questions[: research_rules.MAX_IN_FLIGHT]:
        _ask(job.item, plan, question)
    wait_state.schedule_end(course)
    delivery.finish()


def _ask(item: WorkItem, plan: Planning, question: Question) -> None:
    request = ResearchRequest.objects.create(
        planning=plan,
        round=plan.rounds,
        dedupe_key=question.key,
        task=question.task,
        return_format=question.return_format,
        max_tokens=question.max_tokens,
        deadline=now() + timedelta(seconds=settings.RESEARCH_SECONDS),
        created_at=now(),
    )
    message = bus.send_message(
        Queue.EXECUTOR,
        kind=Kind.RESEARCH_REQUEST,
        scope_id=f"research:{request.pk}",
        sender=Sender.PLANNER,
        payload=Request(key=question.key, round=plan.rounds),
        content=question.task,
        constraints=ResearchConstraints(return_format=question.return_format, max_tokens=question.max_tokens),
        trace_id=item.trace_id,
        message_id=f"research:{request.pk}",
        task_id=item.pk,
        taint=Taint.EXTERNAL,
    )
    pool.join_queue(message, scope_id=execution_queue.pool_scope(item), kind=SlotKind.RESEARCH)
    record(AuditEvent.RESEARCH_ASKED, subject=f"work:{item.pk}", data={"round": plan.rounds})


def open_job(delivery: Delivery) -> ResearchJob | None:
    """Return the job; None if the answer is no longer needed (the delivery is finished), or the pool is full (it is
    deferred)."""
    message = delivery.message
    assert message.task_id is not None
    lock_item(message.task_id)
    request = _request_of(message)
    # The planner no longer waits for it, so no model is paid for it.
    if request is None or request.state != ResearchState.ASKED or request.deadline <= now():
        completion.finish_delivery(delivery)
        return None
    if not pool.acquire(delivery.lease):
        delivery.defer(settings.POOL_RETRY_SECONDS, pool.IN_USE)
        return None
    return _job(delivery, request, message.constraints.tools_allowed if message.constraints else ())


def _request_of(message: QueueMessage) -> ResearchRequest | None:
    key = (message.payload or {}).get("key")
    request: ResearchRequest | None = (
        ResearchRequest.objects.select_related("planning__work_item__deployment")
        .filter(planning__work_item_id=message.task_id, dedupe_key=key)
        .order_by("-created_at")
        .first()
    )
    return request


def _job(delivery: Delivery, request: ResearchRequest, tools: tuple[str, ...]) -> ResearchJob:
    item = request.planning.work_item
    run_id = planning.run_of(item, lock_course(item))
    web = outside_tools.web_search_tool(item.deployment_id)
    return ResearchJob(
        request_id=request.pk,
        item_id=item.pk,
        run=RunRef(delivery.tenant_id, run_id, delivery.lease.ref),
        tools=tools,
        gates=gates_of(item),
        # A web search that is not set up is not offered.
        briefing=_briefing(
            item, request, research_rules.clamp_tools(tools) - (set() if web else {outside_tools.WEB_SEARCH})
        ),
        model_name=model_name(item, Role.EXECUTOR),
        keys=keys_of(item),
        max_tokens=request.max_tokens,
        seconds_left=max(0.0, (request.deadline - now()).total_seconds()),
        web=web,
        values="\n".join(as_text(call.args) for call in item.spec.calls),
    )


def _briefing(item: WorkItem, request: ResearchRequest, tools: frozenset[str]) -> Briefing:
    """The question is quoted, so that it can name no call; the first search is a real call block."""
    quoted = "\n".join(f"> {line}" for line in request.task.splitlines())
    search = call_block(PlannedCall("memory_search", {"query": " ".join(request.task.split())[:500]}))
    expected_form = f"Wanted form: {' '.join(request.return_format.split())[:300]}"
    return Briefing(
        role=Role.EXECUTOR,
        text=item.title,
        title=item.deployment.title if item.deployment else "",
        constitution=(_INSTRUCTION,),
        tools=tuple(ToolBrief(name, f"Research: {name}", {}) for name in sorted(tools)),
        work_body=f"# Question\n\n{quoted}\n\n{expected_form}\n\n{_files(item)}Begin with this search.\n\n{search}",
        reference=str(request.pk),
    )


def _files(item: WorkItem) -> str:
    """The names of readable files, quoted: scripts have chosen them."""
    listed = "\n".join(f"> {' '.join(name.split())}" for name in artifact_reader.readable_names(item))
    return f"Files of this work:\n\n{listed}\n\n" if listed else ""


def send_answer(delivery: Delivery, job: ResearchJob, answer: Answer) -> None:
    """Send the answer to the planner; it counts only if the planner still waits when it arrives."""
    request = ResearchRequest.objects.select_related("planning__work_item").get(pk=job.request_id)
    item = request.planning.work_item
    problem = _problem(answer) if answer.error else None
    bus.send_message(
        Queue.PLANNER,
        kind=Kind.RESEARCH_RESULT,
        scope_id=item.pk,
        sender=Sender.EXECUTOR,
        payload=problem or Result(key=request.dedupe_key),
        content=answer.text,
        trace_id=item.trace_id,
        message_id=f"result:{request.pk}",
        task_id=item.pk,
        taint=Taint.EXTERNAL,
    )
    completion.finish_delivery(delivery)


def _problem(answer: Answer) -> ErrorPayload:
    return ErrorPayload(
        error_code=FailureCode(answer.error),
        retryable=False,
        origin_agent=Sender.EXECUTOR,
        attempt_number=0,
        detail="the question was not answered",
    )


def record_answer(message: QueueMessage) -> None:
    """Store an answer. The last one of a round lets the planner continue; a late one is only audited."""
    assert message.task_id is not None
    item = lock_item(message.task_id)
    request_id = UUID(message.message_id.partition(":")[2])
    request = ResearchRequest.objects.select_related("planning").get(pk=request_id, planning__work_item=item)
    # Judged under the item's lock: a late answer must not change what the planner has been told by now.
    in_time = request.state == ResearchState.ASKED and request.deadline > now()
    outcome = (message.error_code or "answered") if in_time else "late"
    record(AuditEvent.RESEARCH_ENDED, subject=f"work:{item.pk}", data={"outcome": outcome})
    if not in_time:
        return
    request.state = ResearchState.FAILED if message.error_code else ResearchState.ANSWERED
    request.error = message.error_code
    request.result = research_rules.truncate_answer(message.content, request.max_tokens)
    request.save(update_fields=["state", "error", "result"])
    _continue_planning(item, request.planning, PlanningState.READY_TO_FINALIZE)


def _continue_planning(item: WorkItem, plan: Planning, state: PlanningState) -> None:
    """Ask the planner again, with the answers, once no question is open."""
    if plan.requests.filter(state=ResearchState.ASKED).exists() or plan.state != PlanningState.AWAITING_RESEARCH:
        return
    planning.move_planning(plan, state)
    failure_handling.repeat_question(item, lock_course(item), plan)


def end_waits(item_id: UUID) -> datetime | None:
    """End the item's wait and its questions that are overdue; returns when the next one is due."""
    failure_handling.end_wait(item_id)
    item = lock_item(item_id)
    requests = ResearchRequest.objects.select_related("planning").filter(planning__work_item=item)
    for request in requests.filter(state=ResearchState.ASKED, deadline__lte=now()):
        _expire(item, request)
    return wait_state.next_end(lock_course(item))


def _expire(item: WorkItem, request: ResearchRequest) -> None:
    """Expire the question; the planner continues with what it has."""
    request.state = ResearchState.EXPIRED
    request.save(update_fields=["state"])
    record(AuditEvent.RESEARCH_ENDED, subject=f"work:{item.pk}", data={"outcome": "timeout"})
    _continue_planning(item, request.planning, PlanningState.EXPIRED)
