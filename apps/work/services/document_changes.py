"""Make approved changes of the company's documents: look up the approval behind a worker's row, and carry out what the
approved plan says (docs/adr 0085).

Always holds: what is changed is read from the plan that was approved, never from what a script or a worker said; once
a call; only on the version that was seen. Handler of `Kind.DOCUMENT_CHANGE`, on the queue `trusted`.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from pydantic import ValidationError

from apps.bus.deliveries import Delivery
from apps.bus.schemas import AlreadyProcessed, LeaseLost
from apps.guard.schemas import call_digest
from apps.memory.services import revise_document
from apps.skills import queries as skills
from apps.work.document_tools import Change, change_of
from apps.work.enums import EffectState, WorkItemStatus
from apps.work.models import KnowledgeEffect, WorkItem
from apps.work.services.authority import authority_of
from kernel.errors import SilasError
from kernel.tenancy import in_scope, in_thread


async def carry_out(delivery: Delivery) -> None:
    """Make the change that the row asks for, or say on the row why it is not made. The message's scope is the row."""
    effect_id = UUID(delivery.message.subject)
    change = await in_scope(delivery.tenant_id, _wanted, effect_id)
    if change is None:
        return

    def stored(version: int) -> None:
        _done(effect_id, change, version)
        delivery.finish()

    revised = partial(revise_document, seen=change.seen, title=change.title, text=change.text, on_stored=stored)
    try:
        await in_thread(revised, delivery.tenant_id, change.place)
    except (LeaseLost, AlreadyProcessed):
        raise
    except SilasError as refusal:
        await delivery.commit(_refuse, effect_id, refusal)


def _wanted(effect_id: UUID) -> Change | None:
    """The approved change; None where nobody waits for it any more, or where it is refused."""
    effect: KnowledgeEffect | None = KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED).first()
    if effect is None:
        return None
    try:
        return _approved(effect)
    except SilasError as refusal:
        _refuse(effect_id, refusal)
    except ValidationError:
        _refuse(effect_id, SilasError("knowledge_refused", "The approved plan cannot be read."))
    return None


def _approved(effect: KnowledgeEffect) -> Change:
    """What a person approved. Raises `SilasError` for a row that no approval stands behind."""
    related = ("approval_token", "parent", "batch")
    item: WorkItem = WorkItem.objects.select_related(*related).get(pk=effect.work_item_id)
    refusal = authority_of(item).refusal
    if item.status != WorkItemStatus.RUNNING or refusal:
        raise SilasError("knowledge_refused", f"Nobody's yes stands behind this ({refusal or item.status}).")
    wanted = [call for call in item.spec.calls if call_digest(call.tool, call.args) == effect.call_digest]
    tools = {tool.name: tool for tool in skills.tools_for(item.spec.skills)}
    tool = tools.get(wanted[0].tool) if wanted else None
    if tool is None or not (tool.acting and tool.knowledge):
        raise SilasError("knowledge_refused", "The approved plan does not say this.")
    return change_of(tool, wanted[0].args)


def _done(effect_id: UUID, change: Change, version: int) -> None:
    answer = {"document": change.place.reference, "version": version, "before": change.seen}
    waited = KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED)
    if not waited.update(state=EffectState.DONE, answer=answer):
        raise SilasError("knowledge_late", "Nobody waits for this any longer.")


def _refuse(effect_id: UUID, refusal: SilasError) -> None:
    told = {"code": refusal.code, "reason": refusal.message}
    KnowledgeEffect.objects.filter(pk=effect_id, state=EffectState.ASKED).update(state=EffectState.REFUSED, answer=told)
