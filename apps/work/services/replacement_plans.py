"""Adopt a plan that replaces a failed one: a new item with a new card and approval; no standing approval covers it.

Runs in a process that may open cards. The new plan may call what the customer's level allowed when the first was
requested; everything else is validated as for any plan (spec 19.4.2).
"""

from __future__ import annotations

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.guard import queries as guarded
from apps.skills import outside_tools
from apps.skills import queries as skills
from apps.work.attempt_jobs import gates_of
from apps.work.enums import Waiting, WorkItemStatus, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import ResearchRequest, WorkItem
from apps.work.provenance import Tracer, follow_up_tracer
from apps.work.queries import course_of
from apps.work.services import completion, failure_handling
from apps.work.services.proposals import propose
from apps.work.visitor_messages import READ_INSTRUCTIONS
from kernel.provenance import Origin, Source, Traced
from kernel.tenancy import in_scope
from llm.calls import PlannedCall


async def adopt_plan(delivery: Delivery) -> None:
    """Handle `plan_result` on the trusted queue."""
    await in_scope(delivery.tenant_id, _adopt, delivery)


def _adopt(delivery: Delivery) -> None:
    message = delivery.message
    assert message.task_id is not None
    item = lock_item(message.task_id)
    course = lock_course(item)
    # The wait may have ended while the planner thought, and the item with it.
    if course.waiting_for != Waiting.REPLAN:
        _record_end(item, "late")
    elif _propose(item, message.plan_markdown, frozenset(course.granted)):
        _record_end(item, "proposed")
        completion.end_item(item, WorkItemStatus.STUCK, WorkReason.REPLANNED, error=item.last_error)
    else:
        _record_end(item, "refused")
        failure_handling.give_up(item)
    delivery.finish()


def _propose(item: WorkItem, plan_markdown: str, granted: frozenset[str]) -> bool:
    if item.deployment is None:
        return False
    proposal = propose(
        deployment=item.deployment,
        session_id=item.session_id,
        plan_markdown=plan_markdown,
        access=granted,
        subject=item.subject,
        gates=gates_of(item),
        trace_id=item.trace_id,
        requested_by=item.requested_by,
        replaces=item,
        marks=(READ_INSTRUCTIONS,) if guarded.has_content_marks(item.pk) else (),
        tracing=_tracing(item),
    )
    return proposal.outcome == "card"


def _tracing(item: WorkItem) -> Tracer:
    """Values of the previous plan keep their origins. Its planner also saw the failure, in words that may be a tool's
    own, and research answers."""
    tools_by_name = {tool.name: tool for tool in skills.tools_in_use(item.spec.skills)}
    is_outside = any(call.tool not in tools_by_name or tools_by_name[call.tool].is_outside for call in item.spec.calls)
    failed = Traced(Origin.TOOL, label="the error of the earlier work") if is_outside else Traced(Origin.RECORDS)
    searched = Origin.TOOL if outside_tools.web_search_tool(item.deployment_id) else Origin.DOCUMENT
    answers = (
        ResearchRequest.objects.filter(planning__work_item=item).exclude(result="").values_list("result", flat=True)
    )
    research_sources = (
        Source(Traced(searched, label="what was looked up for this plan"), answer) for answer in answers
    )
    return follow_up_tracer(item.spec, Source(failed, item.last_error), *research_sources)


def _record_end(item: WorkItem, outcome: str) -> None:
    record(AuditEvent.REPLAN_ENDED, subject=f"work:{item.pk}", data={"outcome": outcome})


def tried_plans(item: WorkItem) -> list[tuple[PlannedCall, ...]]:
    """Return the calls of this plan and of all the plans that it replaced."""
    plans = [item.spec.calls]
    while (before := course_of(item).replaces) is not None:
        plans.append(before.spec.calls)
        item = before
    return plans
