"""How does an approved change of the company's documents come about? A web process looks up the yes behind a worker's
row, and carries out what the approved plan says (docs/adr 0085).

Always holds: what is changed is read from the plan that was approved, never from what a script or a worker said; once
a call; only on the version that was seen. Called by a loop of each web process (`silas_platform.background`).
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import connection
from django.db.models import Q
from pydantic import ValidationError

from apps.guard.schemas import call_digest
from apps.memory.services import revise
from apps.skills import queries as skills
from apps.work.enums import WorkItemStatus
from apps.work.knowledge_models import EffectState, KnowledgeEffect
from apps.work.library import Change, change_of
from apps.work.models import WorkItem
from apps.work.services.authority import authority_of
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import over_each, tenant_scope

_CLAIM_SECONDS = 120


def work_off() -> int:
    """Carry out whatever waits, of every tenant; how many there were. In a web process, outside of any scope."""
    try:
        return over_each(_waiting_tenants(), carry_out_next)
    finally:
        connection.close()


def _waiting_tenants() -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT work_knowledge_waiting_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def carry_out_next(tenant_id: UUID) -> int:
    """One change of this tenant, outside of any scope; how many there were."""
    with tenant_scope(tenant_id):
        effect = _claimed()
        if effect is None:
            return 0
        try:
            change = _approved(effect)
        except SilasError as refusal:
            _refuse(effect, refusal)
            return 1
        except ValidationError:
            # Else the same row would be the oldest for ever, and keep its company's others waiting.
            _refuse(effect, SilasError("knowledge_refused", "The approved plan cannot be read."))
            return 1
    try:
        revise(
            tenant_id,
            change.place,
            seen=change.seen,
            title=change.title,
            text=change.text,
            on_stored=partial(_done, effect, change),
        )
    except SilasError as refusal:
        with tenant_scope(tenant_id):
            _refuse(effect, refusal)
    return 1


def _claimed() -> KnowledgeEffect | None:
    free = Q(claimed_until=None) | Q(claimed_until__lte=now())
    due = KnowledgeEffect.objects.filter(free, state=EffectState.ASKED).order_by("created_at")
    found: KnowledgeEffect | None = due.select_for_update(of=("self",), skip_locked=True, no_key=True).first()
    if found is not None:
        KnowledgeEffect.objects.filter(pk=found.pk).update(claimed_until=now() + timedelta(seconds=_CLAIM_SECONDS))
    return found


def _approved(effect: KnowledgeEffect) -> Change:
    """What a person said yes to. Raises `SilasError` for a row that nobody's yes stands behind."""
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


def _done(effect: KnowledgeEffect, change: Change, version: int) -> None:
    answer = {"document": change.place.reference, "version": version, "before": change.seen}
    waited = KnowledgeEffect.objects.filter(pk=effect.pk, state=EffectState.ASKED)
    if not waited.update(state=EffectState.DONE, answer=answer):
        raise SilasError("knowledge_late", "Nobody waits for this any longer.")


def _refuse(effect: KnowledgeEffect, refusal: SilasError) -> None:
    told = {"code": refusal.code, "reason": refusal.message}
    KnowledgeEffect.objects.filter(pk=effect.pk, state=EffectState.ASKED).update(state=EffectState.REFUSED, answer=told)
