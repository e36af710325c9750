"""What becomes of a plan that takes another's place? A new item, a new card, a new yes; never a standing one.

Runs in a web process, because only there a person can be asked. What the new plan may call is what the customer's level
allowed when the first was asked for; everything else is checked as for any plan (spec 19.4.2).
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
from kernel.llm.calls import PlannedCall
from kernel.provenance import Origin, Source, Traced
from kernel.tenancy import in_scope


async def adopt_plan(delivery: Delivery) -> None:
    """`plan_result` on the proxy queue."""
    await in_scope(delivery.tenant_id, _adopt, delivery)


def _adopt(delivery: Delivery) -> None:
    message = delivery.message
    assert message.task_id is not None
    item = lock_item(message.task_id)
    course = lock_course(item)
    if course.waiting_for != Waiting.REPLAN:
        _end(item, "late")
    elif _proposed(item, message.plan_markdown, frozenset(course.granted)):
        _end(item, "proposed")
        completion.end_item(item, WorkItemStatus.STUCK, WorkReason.REPLANNED, error=item.last_error)
    else:
        _end(item, "refused")
        failure_handling.give_up(item)
    delivery.finish()


def _proposed(item: WorkItem, plan_markdown: str, granted: frozenset[str]) -> bool:
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
        marks=(READ_INSTRUCTIONS,) if guarded.read_instructions(item.pk) else (),
        tracing=_tracing(item),
    )
    return proposal.outcome == "card"


def _tracing(item: WorkItem) -> Tracer:
    """The values of the plan before keep their origins. Beside them its planner was shown what went wrong, in words
    that may be a tool's own, and what was looked up for it."""
    known = {tool.name: tool for tool in skills.tools_in_use(item.spec.skills)}
    is_outside = any(call.tool not in known or known[call.tool].is_outside for call in item.spec.calls)
    failed = Traced(Origin.TOOL, label="the error of the earlier work") if is_outside else Traced(Origin.RECORDS)
    searched = Origin.TOOL if outside_tools.web_search_tool(item.deployment_id) else Origin.DOCUMENT
    answers = (
        ResearchRequest.objects.filter(planning__work_item=item).exclude(result="").values_list("result", flat=True)
    )
    found = (Source(Traced(searched, label="what was looked up for this plan"), answer) for answer in answers)
    return follow_up_tracer(item.spec, Source(failed, item.last_error), *found)


def _end(item: WorkItem, outcome: str) -> None:
    record(AuditEvent.REPLAN_ENDED, subject=f"work:{item.pk}", data={"outcome": outcome})


def tried_plans(item: WorkItem) -> list[tuple[PlannedCall, ...]]:
    """The calls of this plan and of all that it took the place of."""
    found = [item.spec.calls]
    while (before := course_of(item).replaces) is not None:
        found.append(before.spec.calls)
        item = before
    return found
