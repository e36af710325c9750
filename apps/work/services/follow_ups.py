"""Turn a colleague's request to follow up finished work into a plan: the deployment's planner writes it, and it is
proposed like any plan (spec 5.1 step 13, 5.1.6).

Always holds: the plan may call only what the customer's level allowed for the work it follows; nothing runs without a
card of its own. The model runs outside of every scope (`work.planner`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.bus.schemas import RESEARCH_TOOLS
from apps.guard import queries as guarded
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Limits, RunRef
from apps.memory.recall import confirmed_preferences
from apps.skills import roles
from apps.work.attempt_jobs import gates_of, keys_of, model_name
from apps.work.enums import WorkItemStatus
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.provenance import follow_up_tracer
from apps.work.queries import course_of
from apps.work.schemas import Proposal
from apps.work.services.planning import granted_tools
from apps.work.services.proposals import propose
from apps.work.visitor_messages import READ_INSTRUCTIONS
from kernel.provenance import Origin as From
from kernel.provenance import Source, Traced
from kernel.tenancy import current_tenant_id
from llm.briefing import Briefing, HistoryMessage
from llm.enums import Role
from llm.keys import ProviderKeys

_LIMITS = Limits(cost_usd="0.25", tokens=20_000, calls=4)
_INSTRUCTION = (
    "What was said last is done. A colleague wants what stands in the message to follow. Write one plan for exactly"
    " that as `plan_action`, with the tools above. If they cannot do it, say so in `message` and leave `plan_action`"
    " null."
)


@dataclass(frozen=True)
class FollowUpJob:
    """One run of the planner about a follow-up, ready to happen outside of any scope."""

    item_id: UUID
    run: RunRef
    briefing: Briefing
    model_name: str
    keys: ProviderKeys


def open_job(item_id: UUID, wish: str, *, asked_by: UUID) -> FollowUpJob | None:
    """Return what the planner needs; None for work that is not done, or without a deployment. `asked_by`: the row that
    pays."""
    item: WorkItem | None = (
        WorkItem.objects.select_related("deployment").filter(pk=item_id, status=WorkItemStatus.DONE).first()
    )
    if item is None or item.deployment is None:
        return None
    run = guard.open_run(
        Origin.WORK,
        asked_by,
        deployment_id=item.deployment_id,
        phase=Phase.EXECUTION,
        allow=RESEARCH_TOOLS,
        limits=_LIMITS,
    )
    return FollowUpJob(
        item_id=item.pk,
        run=RunRef(current_tenant_id(), run.pk),
        briefing=_briefing(item, wish),
        model_name=model_name(item, Role.PLANNER),
        keys=keys_of(item),
    )


def propose_follow_up(job: FollowUpJob, plan_markdown: str, *, trace_id: str) -> Proposal:
    """Propose the plan. In a process that may open cards."""
    guard.close_run(job.run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)
    item = lock_item(job.item_id)
    if not plan_markdown or item.deployment is None:
        return Proposal("refused", reason="No plan does this.", code="no_plan")
    # The assistant suggested the follow-up and a colleague accepted it: neither its words nor the earlier result count
    # as the colleague's.
    result = Source(Traced(From.TOOL, label="the result of the earlier work"), item.summary)
    return propose(
        deployment=item.deployment,
        session_id=item.session_id,
        plan_markdown=plan_markdown,
        access=frozenset(course_of(item).granted),
        subject=item.subject,
        gates=gates_of(item),
        trace_id=trace_id,
        requested_by=item.requested_by,
        continuation_of=item.pk,
        always_asks=True,
        marks=(READ_INSTRUCTIONS,) if guarded.has_content_marks(item.pk) else (),
        tracing=follow_up_tracer(item.spec, result, started=Traced(From.STAFF)),
    )


def _briefing(item: WorkItem, wish: str) -> Briefing:
    return Briefing(
        role=Role.PLANNER,
        text=wish,
        title=item.deployment.title if item.deployment else "",
        skills=roles.instructions(item.spec.skills),
        tools=tuple(granted_tools(item, course_of(item))),
        history=(HistoryMessage("bot", f"Done: {item.title}. {item.summary}".strip()),),
        memories=confirmed_preferences(item.deployment_id).value if item.deployment_id else (),
        instruction=_INSTRUCTION,
        reference=str(item.pk),
    )
