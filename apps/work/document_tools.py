"""What tools see of the company's documents, which change a call says, and how a worker has it made.

A worker may write no knowledge: it asks by a row and waits for the trusted worker (`services.documents`, ADR 85).
Called by `skills.runs` through its port, by the checks of finished work, and by whoever words a card.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.approvals.schemas import Fact
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.guard.schemas import CallContext, CallFailed, call_digest
from apps.memory import queries as memory
from apps.memory.queries import DocumentText
from apps.memory.services import DocumentPlace
from apps.skills.schemas import ToolSpec
from apps.work.enums import EffectState
from apps.work.models import Attempt, KnowledgeEffect
from kernel.canonical import canonical_bytes, sha256_hex
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable

_LOOK_SECONDS, _LONGEST_TITLE = 0.1, 200
_GONE = "This document is not there, or was changed meanwhile."


@dataclass(frozen=True)
class Change:
    """Another text for a document. `seen`: the newest version when it was decided, 0 for a new document."""

    place: DocumentPlace
    seen: int
    title: str
    text: str


# --- what a script sees


def documents_for_script(ctx: CallContext) -> dict[str, bytes]:
    """`documents.json`: what there is; `page.json`: the document that the call names, as it reads now. At the levels of
    the conversation; work that was approved reads at all of them."""
    levels = None if "attempt" in ctx.context else tuple(ctx.context.get("levels") or ())
    with tenant_scope(ctx.tenant_id):
        found = memory.read_document(str(ctx.args.get("collection")), str(ctx.args.get("document")))
        is_in_reach = found is not None and (levels is None or found.level in levels)
        return {
            "documents.json": canonical_bytes(memory.list_documents(levels=levels)),
            "page.json": canonical_bytes(_told(found) if found and is_in_reach else None),
        }


def _told(page: DocumentText) -> dict[str, Any]:
    return {
        "collection": page.collection,
        "document": page.reference,
        "title": page.title,
        "version": page.version,
        "text": page.text,
    }


def check_mounts(tools: Sequence[ToolSpec], calls: Sequence[PlannedCall]) -> dict[str, Mapping[str, bytes]]:
    """For the checks of such tools: the documents that the calls name, read back, with the digest of the text that is
    to be put back. Empty for all other tools. In a scope."""
    using = {tool.name: tool for tool in tools if tool.knowledge and tool.acting}
    named = [(using[call.tool], call.args) for call in calls if call.tool in using]
    if not named:
        return {}
    return {"knowledge": {"pages.json": canonical_bytes([_read_back(tool, args) for tool, args in named])}}


def _read_back(tool: ToolSpec, args: Mapping[str, Any]) -> dict[str, Any]:
    collection, reference = str(args["collection"]), _reference(tool, args)
    page = memory.read_document(collection, reference)
    before = memory.version_text(collection, reference, int(args["to"])) if tool.knowledge == "put_back" else None
    told = {**_told(page), "digest": sha256_hex(page.text)} if page else None
    return {"does": tool.knowledge, "args": dict(args), "page": told, "wanted": sha256_hex(before or "")}


def change_facts(tool: ToolSpec, args: Mapping[str, Any]) -> list[Fact]:
    """What a card says beside the skill's own words: how the document reads now, and how it will. In a scope."""
    if tool.knowledge in (None, "read"):
        return []
    try:
        change = change_of(tool, args)
    except SilasError as refused:
        return [Fact("Cannot be done now", text=refused.message)]
    page = memory.read_document(str(args["collection"]), change.place.reference)
    before = page.text if page else ""
    return [Fact("The document", before=before or "(nothing)", after=change.text or "(taken out)")]


# --- what a call says


def change_of(tool: ToolSpec, args: Mapping[str, Any]) -> Change:
    """Raises `SilasError` for a document that is not as the call says."""
    reference = _reference(tool, args)
    home, page = memory.collection_id(str(args["collection"])), memory.read_document(str(args["collection"]), reference)
    if home is None or (tool.knowledge != "add" and (page is None or page.version != int(args["version"]))):
        raise SilasError("knowledge_changed", _GONE)
    if tool.knowledge == "add" and page is not None and page.text:
        raise SilasError("knowledge_changed", "There is a document of this title already.")
    title, text = str(args.get("title") or (page.title if page else "")), _text(tool, args, reference)
    if replace_unstorable(text) != text or replace_unstorable(title) != title or not 0 < len(title) <= _LONGEST_TITLE:
        raise SilasError("knowledge_refused", "A text or a title that cannot be stored.")
    return Change(DocumentPlace(home, reference, page.url if page else ""), page.version if page else 0, title, text)


def _text(tool: ToolSpec, args: Mapping[str, Any], reference: str) -> str:
    if tool.knowledge == "take_out":
        return ""
    if tool.knowledge in ("add", "change"):
        return str(args["text"])
    said = memory.version_text(str(args["collection"]), reference, int(args["to"]))
    if said is None:
        raise SilasError("knowledge_changed", _GONE)
    return said


def _reference(tool: ToolSpec, args: Mapping[str, Any]) -> str:
    """A document that is added is called by its title; any other is named by the call."""
    return f"editor/{args['title']}" if tool.knowledge == "add" else str(args["document"])


# --- the worker's half


def request_change(ctx: CallContext) -> dict[str, Any]:
    """Ask for the change that this call was approved for, and wait for what becomes of it. Blocking, outside of any
    transaction. Raises `CallFailed`, effect-free: a change that nobody waits for any longer is not carried out."""
    with tenant_scope(ctx.tenant_id):
        attempt = Attempt.objects.filter(pk=ctx.context.get("attempt")).first()
        if attempt is None:
            raise _failed("knowledge_refused", "Documents change by approved work only.")
        effect = _asked(attempt.work_item_id, call_digest(ctx.tool, ctx.args))
    ends = time.monotonic() + settings.KNOWLEDGE_WAIT_SECONDS
    while effect.state == EffectState.ASKED and time.monotonic() < ends:
        time.sleep(_LOOK_SECONDS)
        effect = _again(ctx.tenant_id, effect.pk)
    return _answer(_withdrawn(ctx.tenant_id, effect) if effect.state == EffectState.ASKED else effect)


def _asked(item_id: UUID, digest: str) -> KnowledgeEffect:
    """The row of this call; what came to nothing before is asked for anew, what is done stays done."""
    effect: KnowledgeEffect
    effect, is_new = KnowledgeEffect.objects.get_or_create(work_item_id=item_id, call_digest=digest)
    again = KnowledgeEffect.objects.filter(pk=effect.pk, state__in=(EffectState.REFUSED, EffectState.WITHDRAWN))
    if again.update(state=EffectState.ASKED) or is_new:
        bus.enqueue(Kind.DOCUMENT_CHANGE, scope_id=effect.pk)
    effect.refresh_from_db()
    return effect


def _again(tenant_id: UUID, pk: UUID) -> KnowledgeEffect:
    with tenant_scope(tenant_id):
        found: KnowledgeEffect = KnowledgeEffect.objects.get(pk=pk)
        return found


def _withdrawn(tenant_id: UUID, effect: KnowledgeEffect) -> KnowledgeEffect:
    """Nobody waits any longer; whoever carries it out at this moment is waited for, and comes first."""
    with tenant_scope(tenant_id):
        KnowledgeEffect.objects.filter(pk=effect.pk, state=EffectState.ASKED).update(state=EffectState.WITHDRAWN)
    return _again(tenant_id, effect.pk)


def _answer(effect: KnowledgeEffect) -> dict[str, Any]:
    match effect.state:
        case EffectState.DONE:
            return dict(effect.answer)
        case EffectState.REFUSED:
            raise _failed(str(effect.answer.get("code")), str(effect.answer.get("reason")))
        case _:
            raise _failed("knowledge_busy", "The documents could not be changed just now; nothing was changed.")


def _failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
