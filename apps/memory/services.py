"""What members and their API keys change about one memory: correct, pin, confirm, restore, delete.

Members who answer visitors change memories of conversations and customers; what is remembered for the whole company,
and what counts as confirmed, is changed by members who decide. Every change is in the audit log without the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory import questions
from apps.memory.enums import DeletionReason, ScopeKind, Tier, Trust
from apps.memory.graph import enqueue_reading
from apps.memory.memories import MAX_REMEMBERED, looks_like_instructions, scrub
from apps.memory.models import MemoryItem
from apps.memory.rules import is_behavior
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.taint import Taint, join
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable
from llm import embedding

# Former texts that are kept; the oldest are dropped first.
MAX_REVISIONS = 50


@dataclass(frozen=True)
class Editor:
    """Who changes a memory: a member, or an API key (`user` is None), whose scopes were checked where it came in."""

    actor: str
    user: User | None = None


def correct(tenant_id: UUID, memory_id: UUID, text: str, *, by: Editor) -> MemoryItem:
    """Replace the text and keep the former one; secrets and personal data are scrubbed. Outside of any transaction,
    because the text is embedded first.

    The taint stays or rises. A confirmed memory is not confirmed any more: the confirmation was about the former text.
    Raises `NotFound`, 403 `forbidden_role`, `memory_text` and `memory_instructions` 422, `memory_raw` and
    `memory_fixed` 409.
    """
    text = replace_unstorable(text).strip()
    if not 0 < len(text) <= MAX_REMEMBERED:
        raise SilasError(ErrorCode.MEMORY_TEXT)
    if looks_like_instructions(text):
        raise SilasError(ErrorCode.MEMORY_INSTRUCTIONS)
    text = scrub(text)
    vector = embedding.embed(text)
    with tenant_scope(tenant_id):
        row = _locked(memory_id, by)
        if row.tier != Tier.ACTIVE:
            raise SilasError(ErrorCode.MEMORY_RAW)
        if text == row.content:
            return row
        if row.trust == Trust.VERIFIED:
            require(by, Capability.DECIDE)
            # By itself: the database refuses to change the text of a confirmed memory.
            row.trust = Trust.WORKING
            row.save(update_fields=["trust"])
        moment = now()
        former = {"text": row.content, "at": moment.isoformat(), "by": by.actor}
        row.revisions = [*row.revisions, former][-MAX_REVISIONS:]
        row.content, row.embedding, row.updated_at, row.read_at = text, vector, moment, None
        row.taint = join(Taint(row.taint), Taint.AUTH).value
        # What was said repeatedly was the former text.
        row.events = []
        row.save(update_fields=["content", "embedding", "taint", "updated_at", "read_at", "revisions", "events"])
        enqueue_reading()
        record(AuditEvent.MEMORY_CORRECTED, actor=by.actor, subject=_subject(row))
        return row


def pin(memory_id: UUID, *, pinned: bool, by: Editor) -> MemoryItem:
    """Keep the memory until it is unpinned or deleted, or end that; it then expires as one that is stored today.

    The company's retention still applies. Inside a tenant scope. Raises `NotFound`, 403 `forbidden_role` and
    `memory_archived` 409.
    """
    row = _locked(memory_id, by)
    if row.pinned == pinned:
        return row
    if row.archived_at is not None:
        raise SilasError(ErrorCode.MEMORY_ARCHIVED)
    days = settings.MEMORY_DAYS if row.tier == Tier.ACTIVE else settings.MEMORY_RAW_DAYS
    row.pinned, row.valid_until = pinned, None if pinned else now() + timedelta(days=days)
    row.save(update_fields=["pinned", "valid_until"])
    record(AuditEvent.MEMORY_PINNED, actor=by.actor, subject=_subject(row), data={"pinned": pinned})
    return row


def confirm(memory_id: UUID, *, by: Editor) -> MemoryItem:
    """Confirm what the memory says. Inside a tenant scope.

    Raises `NotFound`, 403 `forbidden_role`, and 409 `memory_external`, `memory_raw`, `memory_card_needed`.
    """
    row = _locked(memory_id, by)
    require(by, Capability.DECIDE)
    if row.trust == Trust.VERIFIED:
        return row
    if row.tier != Tier.ACTIVE:
        raise SilasError(ErrorCode.MEMORY_RAW)
    if row.taint == Taint.EXTERNAL:
        raise SilasError(ErrorCode.MEMORY_EXTERNAL)
    if is_behavior(row.tags):
        raise SilasError(ErrorCode.MEMORY_CARD_NEEDED)
    row.trust = Trust.VERIFIED
    row.save(update_fields=["trust"])
    record(AuditEvent.MEMORY_CONFIRMED, actor=by.actor, subject=_subject(row))
    return row


def restore(memory_id: UUID, *, by: Editor) -> MemoryItem:
    """Recall an archived memory again; that counts as use. Inside a tenant scope.

    Raises `NotFound`, 403 `forbidden_role`, for a confirmed memory also from members who do not decide, and
    `memory_fixed` 409.
    """
    row = _locked(memory_id, by)
    if row.archived_at is None:
        return row
    if row.trust == Trust.VERIFIED:
        require(by, Capability.DECIDE)
    row.archived_at, row.archive_reason, row.used_at = None, "", now()
    row.save(update_fields=["archived_at", "archive_reason", "used_at"])
    record(AuditEvent.MEMORY_RESTORED, actor=by.actor, subject=_subject(row))
    return row


def delete(memory_id: UUID, *, reason: DeletionReason, by: Editor) -> None:
    """Delete the memory with its former texts, for good. Inside a tenant scope.

    Raises `NotFound`, 403 `forbidden_role` and `memory_fixed` 409.
    """
    row = _locked(memory_id, by)
    questions.withdraw_for_deleted([row.pk])
    record(AuditEvent.MEMORY_DELETED, actor=by.actor, subject=_subject(row), data={"reason": reason.value})
    row.delete()


def require(by: Editor, capability: Capability) -> None:
    """Raises 403 `forbidden_role` for a member without the capability."""
    if by.user is not None:
        require_role(by.user, roles_with(capability))


def _locked(memory_id: UUID, by: Editor) -> MemoryItem:
    """Lock the memory, which `by` may change."""
    require(by, Capability.ANSWER)
    rows = MemoryItem.objects.select_for_update(no_key=True).defer("embedding", "words")
    row: MemoryItem | None = rows.filter(pk=memory_id).first()
    if row is None:
        raise NotFound()
    if row.scope.startswith(f"{ScopeKind.TENANT.value}:"):
        require(by, Capability.DECIDE)
    if row.trust == Trust.CONSTITUTIONAL:
        raise SilasError(ErrorCode.MEMORY_FIXED)
    return row


def _subject(row: MemoryItem) -> str:
    return f"memory:{row.pk}"
