"""Review texts before they are sent: approved as they are, edited by hand, or reworded by the planner (spec 5.9, 8.2).

Always holds: another text is another plan, validated like any, with a card and an approval of its own; a text that
cannot be reworded is asked about again unchanged. Cards need a process that may open them; the model runs outside of
every scope (`planner.reword_draft`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.risk import max_risk
from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, Risk, Withdrawal
from apps.approvals.models import Card
from apps.approvals.queries import get_card as card_by_id
from apps.approvals.tokens.payloads import call_payload
from apps.bus.models import QueueMessage
from apps.guard.schemas import RunRef
from apps.releases.served import live_settings
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
from kernel.provenance import MADE_UP, Origin, Traced
from kernel.stored_texts import stored_text
from kernel.tenancy import current_tenant_id
from llm.briefing import Briefing
from llm.calls import PlannedCall
from llm.enums import Role
from llm.keys import ProviderKeys

FOUND_BY_GOAL = stored_text("The goal found this with medium confidence.")
BY_HAND = stored_text("It couldn't be reworded, so this is the original text. You can edit it yourself.")
_LEAST_CHARS, _REMARK_CHARS = 12, 300
_REWORDED = stored_text("Reworded at a colleague's request.")
_DEFAULT_INSTRUCTION = "Word it differently."
_INSTRUCTION = (
    "The work item above holds words that are to be sent. A colleague wants them worded anew; how, stands in the"
    " message. Write in `message` the new words alone, ready to be sent, in the same language. Add no fact, name,"
    " number or promise that the old words do not hold. Leave `plan_action` null."
)


def draft_of(call: PlannedCall) -> str | None:
    """Return the longest text among the arguments, if it is long enough to be a message."""
    texts = [value for value in call.args.values() if isinstance(value, str) and len(value) >= _LEAST_CHARS]
    return max(texts, key=len, default=None)


def request_draft_approval(item: WorkItem, calls: Sequence[RequestedCall], *, context: str) -> None:
    """Open a draft card for what the item would send; an item that sends no text gets an ordinary plan card."""
    draft = draft_of(calls[0].call)
    if draft is None:
        request_approval(item, calls, None)
    else:
        _open(item, calls[0], draft, context=context, rationale=context.strip() or FOUND_BY_GOAL)


def _open(
    item: WorkItem,
    requested: RequestedCall,
    draft: str,
    *,
    context: str,
    rationale: str,
    instead_of: Card | None = None,
) -> Card:
    """`instead_of`: the card before; its risk and its requester are kept."""
    call, tool = requested.call, requested.tool
    gravest = Risk(instead_of.risk) if instead_of else Risk.MEDIUM
    asked_by = instead_of.requested_by if instead_of else item.requested_by
    return open_card(
        CardKind.DRAFT_REVIEW,
        subject=CardSubject(WORK_ITEM, item.pk, item.deployment_id, requested_by=asked_by),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            call_payload(call.tool, call.args, work_item_id=str(item.pk), plan_hash=item.plan_hash, step=1),
            reversible=not execution_facts.raises_risk(tool),
            declared_risk=max_risk(Risk(tool.risk), gravest),
            untrusted_target=has_marked_values(item.spec) and instead_of is None,
            reads=card_reads_of([requested], item.subject),
        ),
        text=CardText(
            intent=item.title,
            rationale=rationale,
            consequence=requested.buttons,
            facts=call_facts_of(requested, item.subject),
            details={
                "calls": [{"tool": call.tool, "args": call.args, "runs": execution_facts.describe_execution(tool)}]
            },
        ),
        body={"context": context, "draft": draft},
        seconds=card_timeout_of(item),
        supersedes=instead_of,
    )


def reopen_draft_card(item: WorkItem, requested: RequestedCall, old: Card, *, rationale: str) -> Card:
    """Ask about the same text again, with the records as they are now."""
    body = old.body
    return _open(item, requested, body["draft"], context=body["context"], rationale=rationale, instead_of=old)


def on_draft_edited(item: WorkItem, card: Card) -> None:
    """A person edited the text: bind the plan with it and replace the card. Raises `SilasError` for a text that cannot
    be sent."""
    requested = _validate(item, card.payload["args"])
    _rebind(item, requested, Traced(Origin.STAFF))
    withdraw_cards_about(WORK_ITEM, item.pk, reason=Withdrawal.REPLACED, actor="system")
    context = card.body["context"]
    _open(item, requested, card.body["draft"], context=context, rationale=card.rationale, instead_of=card)


def _validate(item: WorkItem, args: Mapping[str, object]) -> RequestedCall:
    """Return the item's one call with these arguments after validating tool, schema and gates as for any plan."""
    (call,) = item.spec.calls
    (requested,) = screening.resolve_calls([PlannedCall(call.tool, dict(args))], screening.tools_in(item.spec.skills))
    goal = active_goal(item.deployment) if item.deployment else None
    screening.check_call_gates([requested], gates_of(item), goal)
    return requested


def _rebind(item: WorkItem, requested: RequestedCall, by: Traced) -> None:
    edits.apply_edit(item, {**item.spec.as_plan(), "body": edits.body_with_values(item, [requested], by)})
    item.refresh_from_db()


# --- rewording by the planner


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
    """Return what the planner needs; None when the draft no longer waits. Inside a scope."""
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


def _instruction_of(card: Card) -> str:
    """The colleague's instruction."""
    return " ".join(str(card.decision.said.get("freetext", "")).split())


def _briefing(item: WorkItem, card: Card) -> Briefing:
    """The text is quoted: it may come from a visitor and could instruct the planner (prompt injection)."""
    quoted = "\n".join(f"> {line}" for line in card.body["draft"].splitlines())
    return Briefing(
        role=Role.PLANNER,
        text=_instruction_of(card) or _DEFAULT_INSTRUCTION,
        title=item.deployment.title if item.deployment else "",
        persona=live_settings(item.deployment).persona if item.deployment else "",
        skills=roles.instructions(item.spec.skills),
        work_body=f"# {item.title}\n\n{quoted}",
        instruction=_INSTRUCTION,
        reference=str(item.pk),
    )


def open_reworded_card(job: RewordingJob, words: str, *, seconds: float) -> None:
    """Ask about the new text; about the old one if there is none, or it cannot be sent."""
    planning.charge_plan(job.item_id, seconds=seconds)
    item, card = lock_item(job.item_id), card_by_id(job.card_id)
    if not needs_card(item):
        return
    old, context = card.body["draft"], card.body["context"]
    requested = _call_with(item, card, words) if words not in ("", old) else None
    if requested is not None:
        # The planner's words are a model's, also where a person asked for them: the card marks them as such.
        _rebind(item, requested, MADE_UP)
        instruction = _instruction_of(card)[:_REMARK_CHARS]
        rationale = f"{_REWORDED} “{instruction}”" if instruction else _REWORDED
        _open(item, requested, words, context=context, rationale=rationale, instead_of=card)
    else:
        before = _validate(item, card.payload["args"])
        _open(item, before, old, context=context, rationale=BY_HAND, instead_of=card)


def _call_with(item: WorkItem, card: Card, words: str) -> RequestedCall | None:
    """Replace the old text by the new one in the call; None if the result cannot be sent."""
    args = {name: words if value == card.body["draft"] else value for name, value in card.payload["args"].items()}
    try:
        return _validate(item, args)
    except SilasError:
        return None
