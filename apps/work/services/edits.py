"""Edit a planned item on its card: the item becomes the edited plan and waits for that plan's own approval.

Only the arguments of the calls and the words around them may change: tools, checks, gates, skills, budget and customer
stay as the harness set them. Values are validated as in a new plan, and pass schemas, gates and guard again when they
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from apps.approvals import queries as cards
from apps.approvals.cards.schemas import ClientSignature
from apps.approvals.cards.services import edit_card
from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from apps.gates.schemas import GateResult
from apps.tenants.models import User
from apps.work import visitor_messages
from apps.work.attempt_jobs import gates_of
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.provenance import origins_after_edit, with_origins
from apps.work.queries import active_goal, children_of, course_of
from apps.work.schemas import WorkItemSpec
from apps.work.services import screening
from apps.work.services.approval_requests import RequestedCall, card_reads_of, card_text_of, highest_risk, title_of
from apps.work.services.items import announce_waiting
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.provenance import Origin, Traced
from llm.calls import PlannedCall, replace_calls

MAY_CHANGE = frozenset({"title", "body"})


def edit_plan(
    card_id: UUID, *, user: User, calls: Sequence[Mapping[str, Any]], signature: ClientSignature | None = None
) -> Card:
    """Change the arguments of a planned task's calls; returns the new card. `signature` is that of the program that
    answers on the person's behalf.

    Raises `SilasError` 409 `edit_unfit` (other calls), `edit_refused` with the reason when the values are not allowed,
    and what `edit_card` raises. Lock order: card, then item.
    """
    card = cards.get_card(card_id)
    item: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first() if is_editable(card) else None
    if item is None or item.type != WorkItemType.TASK:
        raise SilasError(ErrorCode.EDIT_UNFIT, gettext("This can't be edited."))
    planned = [PlannedCall(str(call["tool"]), dict(call["args"])) for call in calls]
    # Another tool would need other checks, gates and risk than the card was opened with.
    if [call.tool for call in planned] != [call.tool for call in item.spec.calls]:
        raise SilasError(ErrorCode.EDIT_UNFIT, gettext("Only the values of the planned calls can be edited."))
    spec = item.spec.model_copy(update={"body": replace_calls(item.spec.body, planned)})
    requested, asks = _allowed(item, spec)
    by = Traced(Origin.STAFF, f"user:{user.pk}")
    spec = spec.model_copy(update={"title": title_of(requested), "body": body_with_values(item, requested, by)})
    text = card_text_of(requested, spec, item.subject, asks, card.details.get("marks", ()))
    risk, reads = (
        highest_risk(requested_call.tool for requested_call in requested),
        card_reads_of(requested, item.subject),
    )
    return edit_card(
        card_id,
        user=user,
        payload=spec.as_plan(),
        text=text,
        declared_risk=risk,
        reads=reads,
        signature=signature,
    )


def body_with_values(item: WorkItem, requested: Sequence[RequestedCall], by: Traced) -> str:
    """Return the item's body with the values of these calls; changed values come from `by`."""
    before, calls = item.spec, [(requested_call.call, requested_call.tool) for requested_call in requested]
    account = origins_after_edit(before.body, before.calls, calls, by)
    return with_origins(replace_calls(before.body, [requested_call.call for requested_call in requested]), account)


def is_editable(card: Card) -> bool:
    """Whether the values of this card's calls may be changed before approval."""
    return card.kind == CardKind.PLAN and card.subject_kind == "work_item" and bool(card.details.get("calls"))


def _allowed(item: WorkItem, spec: WorkItemSpec) -> tuple[tuple[RequestedCall, ...], GateResult | None]:
    """Return the calls with their tools, and the gate that needs a person. Raises `SilasError` with the harness's
    reason."""
    goal = active_goal(item.deployment) if item.deployment else None
    try:
        (requested,) = screening.resolve_plan_calls(
            spec, screening.tools_in(spec.skills), frozenset(course_of(item).granted)
        )
        return requested, screening.check_call_gates(requested, gates_of(item), goal)
    except SilasError as refusal:
        message = f"These values aren't allowed: {refusal.message}."
        raise SilasError(ErrorCode.EDIT_REFUSED, message) from refusal


def apply_edit(item: WorkItem, payload: Mapping[str, object]) -> None:
    """Make `payload` the item's plan. Raises `SilasError`: `plan_invalid`, `edit_outside_plan`, `work_settled`."""
    try:
        spec = WorkItemSpec.model_validate(dict(payload))
    except ValidationError as error:
        raise SilasError(ErrorCode.PLAN_INVALID) from error
    before = item.spec
    old, new = before.as_plan(), spec.as_plan()
    tools = [[call.tool for call in spec_.calls] for spec_ in (before, spec)]
    # Checked where it is written too: other rooms come here with payloads of their own.
    if {name for name in old if old[name] != new[name]} - MAY_CHANGE or tools[0] != tools[1]:
        raise SilasError(ErrorCode.EDIT_OUTSIDE_PLAN)
    changes = {"plan": spec.as_text(), "plan_hash": spec.plan_hash, "title": spec.title, "updated_at": now()}
    # Only while it waits: a plan that runs or is over stays what was approved.
    if not WorkItem.objects.filter(pk=item.pk, status=WorkItemStatus.PENDING).update(**changes):
        raise SilasError(ErrorCode.WORK_SETTLED, gettext("This work has already ended or changed."))


def announce_edit(item: WorkItem) -> None:
    """Tell the conversation what is asked for now, with the values that a colleague set."""
    item = WorkItem.objects.get(pk=item.pk)
    if item.session_id is not None:
        announce_waiting(item, changes_of(item))


def changes_of(item: WorkItem) -> tuple[visitor_messages.Change, ...]:
    """The values of a waiting item, of a project those of its tasks, as its visitor reads them now."""
    access = course_of(item).granted
    tools = {name: tool for spec in specs_of(item) for name, tool in screening.tools_in(spec.skills).items()}
    granted = [tool for name, tool in tools.items() if name in access]
    return screening.visible_changes(calls_of(item), gates_of(item), granted=granted, subject=item.subject)


def calls_of(item: WorkItem) -> list[RequestedCall]:
    """The calls for which an approval of the item is asked."""
    return [
        requested
        for spec in specs_of(item)
        for requested in screening.resolve_calls(spec.calls, screening.tools_in(spec.skills))
    ]


def specs_of(item: WorkItem) -> list[WorkItemSpec]:
    return [task.spec for task in children_of(item)] if item.type == WorkItemType.PROJECT else [item.spec]
