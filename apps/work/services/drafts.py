"""Which words would be sent? Shown on a draft's card: to be approved as they stand, worded by hand, or worded anew by
the planner as a colleague asks (spec 5.9, 8.2).

Always holds: other words are another plan, checked like any, under a card and a yes of their own; what cannot be worded
anew is asked about again as it was. Cards need a web process; the model runs outside of every scope (`rewording`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, CardKind, Risk, Withdrawal
from apps.approvals.models import Card
from apps.approvals.payloads import call_payload
from apps.approvals.queries import card as card_by_id
from apps.approvals.risk import highest
from apps.approvals.services import open_card, withdraw_about
from apps.bus.models import QueueMessage
from apps.guard.schemas import RunRef
from apps.skills import roles
from apps.work.attempt_jobs import gates_of, keys_of, model_name
from apps.work.locks import lock_course, lock_item
from apps.work.models import WorkItem
from apps.work.queries import active_goal
from apps.work.services import edits, execution_facts, planning, screening
from apps.work.services.approval_requests import (
    WORK_ITEM,
    RequestedCall,
    call_facts_of,
    card_reads_of,
    card_timeout_of,
    has_marked_values,
    needs_card,
    request_approval,
)
from kernel.errors import SilasError
from kernel.llm.briefing import Briefing
from kernel.llm.calls import PlannedCall
from kernel.llm.enums import Role
from kernel.llm.keys import ProviderKeys
from kernel.provenance import MADE_UP, Origin, Traced
from kernel.tenancy import current_tenant_id

FOUND_BY_GOAL = "The goal found this, and is fairly sure."
BY_HAND = "It could not be worded anew here, so these are the words as they were. You can change them by hand."
_LEAST_CHARS, _REMARK_CHARS = 12, 300
_ASKED = "Worded anew, as a colleague asked."
_ANYHOW = "Word it differently."
_INSTRUCTION = (
    "The work item above holds words that are to be sent. A colleague wants them worded anew; how, stands in the"
    " message. Write in `message` the new words alone, ready to be sent, in the same language. Add no fact, name,"
    " number or promise that the old words do not hold. Leave `plan_action` null."
)


def draft_of(call: PlannedCall) -> str | None:
    """The longest text among the arguments, if it is long enough to be somebody's words."""
    texts = [value for value in call.args.values() if isinstance(value, str) and len(value) >= _LEAST_CHARS]
    return max(texts, key=len, default=None)


def request_draft_approval(item: WorkItem, wanted: Sequence[RequestedCall], *, context: str) -> None:
    """Put what the item would send before a person; what sends no words is an ordinary plan."""
    draft = draft_of(wanted[0].call)
    if draft is None:
        request_approval(item, wanted, None)
    else:
        _open(item, wanted[0], draft, context=context, rationale=context.strip() or FOUND_BY_GOAL)


def _open(
    item: WorkItem, wanted: RequestedCall, draft: str, *, context: str, rationale: str, instead_of: Card | None = None
) -> Card:
    """`instead_of`: the card that asked before; its risk stands, and whoever it names as the one who asked."""
    call, tool = wanted.call, wanted.tool
    gravest = Risk(instead_of.risk) if instead_of else Risk.MEDIUM
    asked_by = instead_of.requested_by if instead_of else item.requested_by
    return open_card(
        CardKind.DRAFT_REVIEW,
        about=About(WORK_ITEM, item.pk, item.deployment_id, requested_by=asked_by),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            call_payload(call.tool, call.args, work_item_id=str(item.pk), plan_hash=item.plan_hash, step=1),
            reversible=not execution_facts.raises_risk(tool),
            declared_risk=highest(Risk(tool.risk), gravest),
            lifted=has_marked_values(item.spec) and instead_of is None,
            reads=card_reads_of([wanted], item.subject),
        ),
        text=CardText(
            intent=item.title,
            rationale=rationale,
            consequence=wanted.buttons,
            facts=call_facts_of(wanted, item.subject),
            details={
                "calls": [{"tool": call.tool, "args": call.args, "runs": execution_facts.describe_execution(tool)}]
            },
        ),
        body={"context": context, "draft": draft},
        seconds=card_timeout_of(item),
        supersedes=instead_of,
    )


def reopen_draft_card(item: WorkItem, wanted: RequestedCall, old: Card, *, rationale: str) -> Card:
    """The same words once more, beside the records as they are now."""
    body = old.body
    return _open(item, wanted, body["draft"], context=body["context"], rationale=rationale, instead_of=old)


def on_draft_edited(item: WorkItem, card: Card) -> None:
    """Somebody wrote other words on a card: they are asked for by a card that binds the plan with them instead of
    `card`, which binds the plan before. Raises `SilasError` for words that cannot be sent."""
    wanted = _checked(item, card.payload["args"])
    _let_be(item, wanted, Traced(Origin.STAFF))
    withdraw_about(WORK_ITEM, item.pk, reason=Withdrawal.REPLACED, actor="system")
    context = card.body["context"]
    _open(item, wanted, card.body["draft"], context=context, rationale=card.rationale, instead_of=card)


def _checked(item: WorkItem, args: Mapping[str, Any]) -> RequestedCall:
    """The item's one call with these arguments, if it may be made: tool, schema and gates as for any plan."""
    (call,) = item.spec.calls
    (wanted,) = screening.resolve_calls([PlannedCall(call.tool, dict(args))], screening.tools_in(item.spec.skills))
    goal = active_goal(item.deployment) if item.deployment else None
    screening.check_call_gates([wanted], gates_of(item), goal)
    return wanted


def _let_be(item: WorkItem, wanted: RequestedCall, by: Traced) -> None:
    edits.apply_edit(item, {**item.spec.as_plan(), "body": edits.body_with_values(item, [wanted], by)})
    item.refresh_from_db()


# --- worded anew by the planner


@dataclass(frozen=True)
class RewordingJob:
    """One run of the planner over a draft, ready to happen outside of any scope."""

    item_id: UUID
    card_id: UUID
    run: RunRef
    briefing: Briefing
    model_name: str
    keys: ProviderKeys


def open_job(message: QueueMessage) -> RewordingJob | None:
    """What the planner needs; None when nobody waits for the words any more. Inside a scope."""
    assert message.task_id is not None and message.payload is not None
    item = lock_item(message.task_id)
    if not needs_card(item):
        return None
    card = card_by_id(UUID(message.payload["card"]))
    return RewordingJob(
        item_id=item.pk,
        card_id=card.pk,
        run=RunRef(current_tenant_id(), planning.run_of(item, lock_course(item))),
        briefing=_briefing(item, card),
        model_name=model_name(item, Role.PLANNER),
        keys=keys_of(item),
    )


def _wish(card: Card) -> str:
    """What the colleague said about it."""
    return " ".join(str(card.decision.said.get("freetext", "")).split())


def _briefing(item: WorkItem, card: Card) -> Briefing:
    """The words are quoted: whoever wrote them says nothing to the planner."""
    quoted = "\n".join(f"> {line}" for line in card.body["draft"].splitlines())
    return Briefing(
        role=Role.PLANNER,
        text=_wish(card) or _ANYHOW,
        title=item.deployment.title if item.deployment else "",
        persona=item.deployment.persona if item.deployment else "",
        skills=roles.instructions(item.spec.skills),
        work_body=f"# {item.title}\n\n{quoted}",
        instruction=_INSTRUCTION,
        reference=str(item.pk),
    )


def open_reworded_card(job: RewordingJob, words: str, *, seconds: float) -> None:
    """Ask about the new words; about the old ones where there are none, or they cannot be sent. In a web process."""
    planning.charge_plan(job.item_id, seconds=seconds)
    item, card = lock_item(job.item_id), card_by_id(job.card_id)
    if not needs_card(item):
        return
    old, context = card.body["draft"], card.body["context"]
    wanted = _with(item, card, words) if words not in ("", old) else None
    if wanted is not None:
        _let_be(item, wanted, MADE_UP)
        _open(item, wanted, words, context=context, rationale=_because(card), instead_of=card)
    else:
        before = _checked(item, card.payload["args"])
        _open(item, before, old, context=context, rationale=BY_HAND, instead_of=card)


def _with(item: WorkItem, card: Card, words: str) -> RequestedCall | None:
    """The call with the new words wherever it would have sent the old ones; None where that cannot be sent."""
    args = {name: words if value == card.body["draft"] else value for name, value in card.payload["args"].items()}
    try:
        return _checked(item, args)
    except SilasError:
        return None


def _because(card: Card) -> str:
    return f"{_ASKED} “{_wish(card)[:_REMARK_CHARS]}”" if _wish(card) else _ASKED
