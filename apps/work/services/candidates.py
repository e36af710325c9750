"""Route what a goal found to batches, drafts, or cards of their own.

Policy gates first, then confidence; no band lets anything run without approval (spec 5.1.5, 5.9). A person's answer
counts for that item alone: nothing is learned here. Only processes that may open cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID, uuid4

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Risk
from apps.approvals.models import Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.queries import active_gates
from apps.skills.roles import inherited_skills
from apps.work.confidence import Thresholds, band_of, chunks, may_relax
from apps.work.enums import Band, WorkReason
from apps.work.locks import lock_customer, lock_item
from apps.work.models import Batch, BatchItem, WorkItem
from apps.work.provenance import Tracer, trace_to
from apps.work.queries import earned_thresholds
from apps.work.schemas import WorkItemSpec
from apps.work.services import authorization, batch_cards, batches, drafts, outbox, screening
from apps.work.services.approval_requests import WORK_ITEM, RequestedCall, card_timeout_of, request_approval
from apps.work.services.items import create_item
from apps.work.services.plan_binding import Terms, bind_task
from kernel.errors import SilasError
from kernel.provenance import Origin, Traced, clean_label
from kernel.stored_texts import stored_text
from llm.calls import PlannedCall, call_block

MAX_CANDIDATES = 200
_QUESTIONS = {Band.LOW: stored_text("Low confidence: {title}"), Band.NOVEL: stored_text("No matching rule: {title}")}
PREPARE, REPHRASE = "prepare", "rephrase"


class Candidate(BaseModel):
    """One thing that could be done, as a skill's script reports it. `confidence` None: no rule fits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: Annotated[str, Field(min_length=1, max_length=60)]
    args: dict[str, Any]
    subject: Annotated[str, Field(max_length=80)] = ""
    actor: Annotated[str, Field(max_length=120)] = ""
    occurred_at: AwareDatetime | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    confidence: float | None = None
    unusual: bool = False


_CANDIDATES: TypeAdapter[list[Candidate]] = TypeAdapter(Annotated[list[Candidate], Field(max_length=MAX_CANDIDATES)])


@dataclass
class RoutingResult:
    """What became of the candidates."""

    batches: list[Batch] = field(default_factory=list)
    drafts: list[WorkItem] = field(default_factory=list)
    attention: list[WorkItem] = field(default_factory=list)
    teaching: list[WorkItem] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Case:
    candidate: Candidate
    item: WorkItem
    calls: tuple[RequestedCall, ...]


def route_candidates(goal_id: UUID, found: Sequence[Mapping[str, object]], *, trace_id: str) -> RoutingResult:
    return route(lock_item(goal_id), _CANDIDATES.validate_python(list(found)), trace_id=trace_id)


def route(goal: WorkItem, candidates: Iterable[Candidate], *, trace_id: str) -> RoutingResult:
    """Put each candidate on the card that its confidence leads to. What policy forbids, or is already open, is left
    out."""
    candidates, routed = list(candidates), RoutingResult()
    # Sorted, so that two searches lock customers in the same order and cannot deadlock.
    for subject in sorted({candidate.subject for candidate in candidates}):
        lock_customer(subject)
    sure: dict[str, list[_Case]] = {}
    for candidate in candidates:
        try:
            case = _case(goal, candidate, trace_id)
        except SilasError as refusal:
            _skip(goal, refusal, routed)
            continue
        band = band_of(candidate.confidence, _thresholds(goal, case))
        if band == Band.HIGH:
            sure.setdefault(candidate.tool, []).append(case)
        else:
            _ask_about(goal, case, band, routed)
    for action, cases in sure.items():
        size = _thresholds(goal, cases[0]).size
        routed.batches += [_batch(goal, action, chunk, trace_id) for chunk in chunks(cases, size)]
    return routed


def _thresholds(goal: WorkItem, case: _Case) -> Thresholds:
    """Return the thresholds that this family of actions has earned here (spec 5.1.6)."""
    tool = case.calls[0].tool
    earns = may_relax(reversible=tool.reversible, risk=Risk(tool.risk))
    return earned_thresholds(goal.deployment_id, case.candidate.tool, earns=earns)


def _skip(goal: WorkItem, refusal: SilasError, routed: RoutingResult) -> None:
    record(AuditEvent.WORK_REFUSED, subject=f"work:{goal.pk}", data={"code": refusal.code})
    routed.refused.append(refusal.code)


def _ask_about(goal: WorkItem, case: _Case, band: Band, routed: RoutingResult) -> None:
    """Open a card of its own. A candidate that no card can show is rejected without stopping the others."""
    placed = {Band.MEDIUM: routed.drafts, Band.LOW: routed.attention, Band.NOVEL: routed.teaching}
    try:
        if band == Band.MEDIUM:
            drafts.request_draft_approval(case.item, case.calls, context=case.candidate.reason)
        else:
            _question(case, _QUESTIONS[band].format(title=case.item.title))
    except SilasError as refusal:
        _skip(goal, refusal, routed)
        authorization.reject(case.item, WorkReason.TOOL)
    else:
        placed[band].append(case.item)


def _case(goal: WorkItem, candidate: Candidate, trace_id: str) -> _Case:
    """Create the work item of one candidate. Raises `SilasError` for what may not be asked for."""
    call = PlannedCall(candidate.tool, candidate.args)
    # What a search found is data: it never says which code runs.
    tools = {name: tool for name, tool in screening.tools_of(goal).items() if not tool.executor}
    calls = screening.resolve_calls([call], tools)
    gates = [*(active_gates(goal.deployment_id).value if goal.deployment_id else ()), *goal.spec.gates]
    screening.check_call_gates(calls, gates, goal)
    screening.require_room(calls, subject=candidate.subject, session_id=None, many=True)
    plan = WorkItemSpec(id=str(uuid4()), type="task", title="x", body=f"{goal.title}.\n\n{call_block(call)}")
    spec = bind_task(
        plan,
        calls,
        Terms(candidate.subject, inherits=inherited_skills(goal.spec.skills), tracing=_tracing(goal)),
        parent=str(goal.pk),
        spawned_by=str(goal.pk),
    )
    item = create_item(
        spec,
        deployment_id=goal.deployment_id,
        session_id=None,
        trace_id=trace_id,
        subject=candidate.subject,
        requested_by=f"goal:{goal.pk}",
    )
    return _Case(candidate, item, calls)


def _tracing(goal: WorkItem) -> Tracer:
    """Values come from the goal's own reading tools: the company's records, or an outside server that one asked."""
    tools = screening.tools_of(goal)
    outside = [tools[call.tool] for call in goal.spec.calls if call.tool in tools and tools[call.tool].is_outside]
    origin = Traced(Origin.TOOL, label=clean_label(outside[0].name)) if outside else Traced(Origin.RECORDS)
    return trace_to(origin)


def _batch(goal: WorkItem, action: str, cases: Sequence[_Case], trace_id: str) -> Batch:
    confidences = [case.candidate.confidence for case in cases if case.candidate.confidence is not None]
    batch = batches.open_batch(
        [_line(case) for case in cases],
        goal_ref=goal.pk,
        deployment_id=goal.deployment_id,
        action=action,
        confidence_min=min(confidences),
        requested_by=f"goal:{goal.pk}",
        trace_id=trace_id,
    )
    batch_cards.open_batch_card(batch)
    return batch


def _line(case: _Case) -> BatchItem:
    fields = case.candidate.model_dump(include={"actor", "occurred_at", "reason", "confidence", "unusual"})
    return BatchItem(work_item=case.item, item_id=case.item.plan_hash, title=case.item.title, **fields)


def _question(case: _Case, intent: str) -> None:
    """Ask about an uncertain candidate. No answer runs it: at most it is prepared and then needs approval."""
    open_card(
        CardKind.DECISION,
        subject=CardSubject(WORK_ITEM, case.item.pk, case.item.deployment_id, requested_by=case.item.requested_by),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": f"{case.item.title}?",
                "options": [{"label": stored_text("Prepare it and ask for approval"), "value": PREPARE}],
                "allow_freetext": True,
            },
            reversible=True,
        ),
        text=CardText(
            intent=intent,
            rationale=case.candidate.reason.strip() or stored_text("The goal found this but isn't sure it's right."),
            consequence={"decline": stored_text("Change nothing")},
            details={"calls": [{"tool": requested.call.tool, "args": requested.call.args} for requested in case.calls]},
        ),
        seconds=card_timeout_of(case.item),
    )


def on_question_answered(item: WorkItem, card: Card, decision: Decision) -> None:
    """Prepare the item and ask for approval, or leave it out."""
    if decision.verdict == ApprovalVerdict.APPROVED:
        request_approval(item, screening.resolve_calls(item.spec.calls, screening.tools_in(item.spec.skills)), None)
    else:
        authorization.reject(item, WorkReason.LEFT_OUT)


def on_draft_answered(item: WorkItem, card: Card, decision: Decision) -> None:
    """Request a new wording of the draft, or leave it out."""
    if decision.said.get("choice") == REPHRASE:
        outbox.enqueue_rewording(item, card.pk)
    else:
        authorization.reject(item, WorkReason.LEFT_OUT)
