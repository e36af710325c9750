"""Document tools: what scripts see of the company's documents, and how a worker requests an approved change.

A worker may not write knowledge: it stores a request and waits for the trusted worker (`services.document_changes`).
Called by `skills.runs` through its port, by verification, and by the code that words cards.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from apps.approvals.cards.schemas import Fact
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.guard.schemas import CallContext, CallFailed, call_digest
from apps.knowledge import queries as memory
from apps.knowledge.queries import DocumentText
from apps.knowledge.services import DocumentPlace
from apps.skills.schemas import ToolSpec
from apps.work.enums import EffectState
from apps.work.models import Attempt, KnowledgeEffect
from kernel.canonical import canonical_bytes, sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.stored_texts import stored_text
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable
from llm.calls import PlannedCall

_POLL_SECONDS, _LONGEST_TITLE = 0.1, 200
_CHANGED = "This document doesn't exist or was changed in the meantime."


@dataclass(frozen=True)
class Change:
    """New text for a document. `seen`: the newest version when it was decided, 0 for a new document."""

    place: DocumentPlace
    seen: int
    title: str
    text: str


# --- documents for scripts


def documents_for_script(ctx: CallContext) -> dict[str, bytes]:
    """Return `documents.json` (the list) and `page.json` (the document that the call names), for the levels of the
    conversation. Approved work reads at all levels."""
    levels = None if "attempt" in ctx.context else tuple(ctx.context.get("levels") or ())
    with tenant_scope(ctx.tenant_id):
        page = memory.read_document(str(ctx.args.get("collection")), str(ctx.args.get("document")))
        # A document above the conversation's levels looks like one that does not exist.
        is_in_reach = page is not None and (levels is None or page.level in levels)
        return {
            "documents.json": canonical_bytes(memory.list_documents(levels=levels)),
            "page.json": canonical_bytes(_page_json(page) if page and is_in_reach else None),
        }


def _page_json(page: DocumentText) -> dict[str, object]:
    return {
        "collection": page.collection,
        "document": page.reference,
        "title": page.title,
        "version": page.version,
        "text": page.text,
    }


def check_mounts(tools: Sequence[ToolSpec], calls: Sequence[PlannedCall]) -> dict[str, Mapping[str, bytes]]:
    """Return files for checks of document tools: the documents named by the calls, and the digest of a text that is to
    be restored. Empty for all other tools. In a scope."""
    using = {tool.name: tool for tool in tools if tool.knowledge and tool.acting}
    document_calls = [(using[call.tool], call.args) for call in calls if call.tool in using]
    if not document_calls:
        return {}
    return {"knowledge": {"pages.json": canonical_bytes([_read_back(tool, args) for tool, args in document_calls])}}


def _read_back(tool: ToolSpec, args: Mapping[str, Any]) -> dict[str, object]:
    collection, reference = str(args["collection"]), _reference(tool, args)
    page = memory.read_document(collection, reference)
    before = memory.version_text(collection, reference, int(args["to"])) if tool.knowledge == "put_back" else None
    content = {**_page_json(page), "digest": sha256_hex(page.text)} if page else None
    return {"does": tool.knowledge, "args": dict(args), "page": content, "wanted": sha256_hex(before or "")}


def change_facts(tool: ToolSpec, args: Mapping[str, object]) -> list[Fact]:
    """Return the card's before and after of the document. In a scope."""
    if tool.knowledge in (None, "read"):
        return []
    try:
        change = change_of(tool, args)
    except SilasError as refused:
        return [Fact(stored_text("Cannot be done now"), text=refused.message)]
    page = memory.read_document(str(args["collection"]), change.place.reference)
    before = page.text if page else ""
    return [
        Fact(
            stored_text("The document"),
            before=before or stored_text("(nothing)"),
            after=change.text or stored_text("(taken out)"),
        )
    ]


# --- changes


def change_of(tool: ToolSpec, args: Mapping[str, Any]) -> Change:
    """Return the change that a call asks for. Raises `SilasError` if the document is not in the state that the call
    expects."""
    reference = _reference(tool, args)
    home, page = memory.collection_id(str(args["collection"])), memory.read_document(str(args["collection"]), reference)
    if home is None or (tool.knowledge != "add" and (page is None or page.version != int(args["version"]))):
        raise SilasError(ErrorCode.KNOWLEDGE_CHANGED, _CHANGED)
    if tool.knowledge == "add" and page is not None and page.text:
        raise SilasError(ErrorCode.KNOWLEDGE_CHANGED, gettext("There is a document of this title already."))
    title, text = str(args.get("title") or (page.title if page else "")), _text(tool, args, reference)
    # Refused and not repaired: a person approved exactly this text.
    if replace_unstorable(text) != text or replace_unstorable(title) != title or not 0 < len(title) <= _LONGEST_TITLE:
        raise SilasError(ErrorCode.KNOWLEDGE_REFUSED, gettext("This text or title can't be stored."))
    return Change(DocumentPlace(home, reference, page.url if page else ""), page.version if page else 0, title, text)


def _text(tool: ToolSpec, args: Mapping[str, Any], reference: str) -> str:
    if tool.knowledge == "take_out":
        return ""
    if tool.knowledge in ("add", "change"):
        return str(args["text"])
    earlier_text = memory.version_text(str(args["collection"]), reference, int(args["to"]))
    if earlier_text is None:
        raise SilasError(ErrorCode.KNOWLEDGE_CHANGED, _CHANGED)
    return earlier_text


def _reference(tool: ToolSpec, args: Mapping[str, object]) -> str:
    """A new document is named by its title, any other by the call."""
    return f"editor/{args['title']}" if tool.knowledge == "add" else str(args["document"])


# --- requests by workers


def request_change(ctx: CallContext) -> dict[str, object]:
    """Request the approved change and wait for its result. Blocking, outside of any transaction. Raises `CallFailed`,
    effect-free: a request that timed out is withdrawn and not carried out."""
    with tenant_scope(ctx.tenant_id):
        attempt = Attempt.objects.filter(Q(pk=ctx.context.get("attempt"))).first()
        if attempt is None:
            raise _failed("knowledge_refused", "Documents can only be changed by approved work.")
        effect = _request(attempt.work_item_id, call_digest(ctx.tool, ctx.args))
    # Polls, because a worker has no channel on which the trusted worker could notify it.
    ends = time.monotonic() + settings.KNOWLEDGE_WAIT_SECONDS
    while effect.state == EffectState.ASKED and time.monotonic() < ends:
        time.sleep(_POLL_SECONDS)
        effect = _reload(ctx.tenant_id, effect.pk)
    return _result(_withdraw(ctx.tenant_id, effect) if effect.state == EffectState.ASKED else effect)


def _request(item_id: UUID, digest: str) -> KnowledgeEffect:
    """Return the row of this call. A refused or withdrawn request is repeated; a finished one stays finished."""
    effect: KnowledgeEffect
    effect, is_new = KnowledgeEffect.objects.get_or_create(work_item_id=item_id, call_digest=digest)
    # In one statement, so that of two retries only one asks again.
    again = KnowledgeEffect.objects.filter(pk=effect.pk, state__in=(EffectState.REFUSED, EffectState.WITHDRAWN))
    if again.update(state=EffectState.ASKED) or is_new:
        bus.enqueue(Kind.DOCUMENT_CHANGE, scope_id=effect.pk)
    effect.refresh_from_db()
    return effect


def _reload(tenant_id: UUID, pk: UUID) -> KnowledgeEffect:
    with tenant_scope(tenant_id):
        effect: KnowledgeEffect = KnowledgeEffect.objects.get(pk=pk)
        return effect


def _withdraw(tenant_id: UUID, effect: KnowledgeEffect) -> KnowledgeEffect:
    """Withdraw the request after the timeout. If it is being carried out at this moment, the row lock waits and the
    result wins."""
    with tenant_scope(tenant_id):
        KnowledgeEffect.objects.filter(pk=effect.pk, state=EffectState.ASKED).update(state=EffectState.WITHDRAWN)
    return _reload(tenant_id, effect.pk)


def _result(effect: KnowledgeEffect) -> dict[str, object]:
    match effect.state:
        case EffectState.DONE:
            return dict(effect.answer)
        case EffectState.REFUSED:
            raise _failed(str(effect.answer.get("code")), str(effect.answer.get("reason")))
        case _:
            raise _failed("knowledge_busy", "The documents couldn't be changed right now; nothing was changed.")


def _failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
