"""Carry out approved changes of the company's documents for workers, after looking up the approval behind the row.

Always holds: what is changed is read from the approved plan, never from what a script or a worker said; once a call;
only on the version that was seen. Handler of `Kind.DOCUMENT_CHANGE`, on the queue `trusted`: a database function could
store a version for a worker, but would have to verify signatures in SQL, and could neither split nor embed the text.
The worker's call waits until the change is made, because the checks that follow it read the document.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from pydantic import ValidationError

from apps.bus.deliveries import Delivery
from apps.bus.schemas import AlreadyProcessed, LeaseLost
from apps.guard.schemas import call_digest
from apps.knowledge.services import revise_document
from apps.skills import queries as skills
from apps.work.document_tools import Change, change_of
from apps.work.enums import EffectState, WorkItemStatus
from apps.work.models import KnowledgeEffect, WorkItem
from apps.work.services.authority import authority_of
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import in_scope, in_thread


async def carry_out(delivery: Delivery) -> None:
    """Make the change that the row asks for, or store on the row why it was refused. The message's scope is the row."""
    effect_id = UUID(delivery.message.subject)
    change = await in_scope(delivery.tenant_id, _change_for, effect_id)
    if change is None:
        return

    def stored(version: int) -> None:
        _record_done(effect_id, change, version)
        delivery.finish()

    revised = partial(revise_document, seen=change.seen, title=change.title, text=change.text, on_stored=stored)
    try:
        await in_thread(revised, delivery.tenant_id, change.place)
    except (LeaseLost, AlreadyProcessed):
        # Another delivery has taken over; refusing here would overwrite its result.
        raise
    except SilasError as refusal:
        await delivery.commit(_refuse, effect_id, refusal)


def _change_for(effect_id: UUID) -> Change | None:
    """Return the approved change; None if the worker no longer waits for it, or it is refused."""
    effect: KnowledgeEffect | None = KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED).first()
    if effect is None:
        return None
    try:
        return _approved_change(effect)
    except SilasError as refusal:
        _refuse(effect_id, refusal)
    except ValidationError:
        _refuse(effect_id, SilasError(ErrorCode.KNOWLEDGE_REFUSED, gettext("The approved plan cannot be read.")))
    return None


def _approved_change(effect: KnowledgeEffect) -> Change:
    """Return what a person approved. Raises `SilasError` for a row without a valid approval."""
    related = ("approval_token", "parent", "batch")
    item: WorkItem = WorkItem.objects.select_related(*related).get(pk=effect.work_item_id)
    refusal = authority_of(item).refusal
    if item.status != WorkItemStatus.RUNNING or refusal:
        raise SilasError(
            ErrorCode.KNOWLEDGE_REFUSED,
            gettext("No valid approval for this change ({value}).").format(value=refusal or item.status),
        )
    # Found by its digest in the approved plan: the row is a worker's word, and only says which call is meant.
    calls = [call for call in item.spec.calls if call_digest(call.tool, call.args) == effect.call_digest]
    tools = {tool.name: tool for tool in skills.tools_for(item.spec.skills)}
    tool = tools.get(calls[0].tool) if calls else None
    if tool is None or not (tool.acting and tool.knowledge):
        raise SilasError(ErrorCode.KNOWLEDGE_REFUSED, gettext("The approved plan doesn't contain this change."))
    return change_of(tool, calls[0].args)


def _record_done(effect_id: UUID, change: Change, version: int) -> None:
    answer = {"document": change.place.reference, "version": version, "before": change.seen}
    waiting = KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED)
    # In the transaction that stores the version: a change that is no longer waited for is rolled back.
    if not waiting.update(state=EffectState.DONE, answer=answer):
        raise SilasError(ErrorCode.KNOWLEDGE_LATE)


def _refuse(effect_id: UUID, refusal: SilasError) -> None:
    answer = {"code": refusal.code, "reason": refusal.message}
    KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED).update(
        state=EffectState.REFUSED, answer=answer
    )
