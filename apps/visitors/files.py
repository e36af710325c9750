"""Accept a file into a conversation, a visitor's or one of staff (`inbox.staff_files`), and serve it again.

Its bytes are examined before anything refers to them; the row, the entry in the conversation and the audit entry are
one transaction; the same `client_id` sent twice is kept once. A file is found within its own conversation only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.db.models import Sum

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import chronicle, rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.tenants.models import User
from apps.visitors import attachments, file_storage, file_types
from apps.visitors.models import VisitorFile
from apps.visitors.offers import most_bytes, offers_of, taken_kinds
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.taint import Taint
from kernel.tenancy import tenant_scope


@dataclass(frozen=True)
class Received:
    """Bytes on the disk that nothing names yet, what they were found to be, and their text."""

    path: Path
    digest: str
    size: int
    name: str
    kind: file_types.Kind
    text: attachments.FileText


def keep(tenant_id: UUID, session_id: UUID, *, name: str, chunks: Iterable[bytes], client_id: str) -> VisitorFile:
    """Take one file. Opens its own scopes; nothing slow is done in them. Raises `NotFound` where no files are taken,
    `SilasError`: 400 `file_kind`, 413 `file_too_large`, 409 `files_full`, `conversation_full`, 503 where it cannot be
    looked at now (`sandbox.readers`)."""
    with tenant_scope(tenant_id):
        if before := sent_before(session_id, client_id):
            return before
        taken, most = _taken(session_id)
    received = receive(name, chunks, taken, most)
    return store(tenant_id, received, lambda stored_name: _write(session_id, received, client_id, stored_name))


def store(tenant_id: UUID, received: Received, write: Callable[[str], VisitorFile]) -> VisitorFile:
    """Store received bytes and `write` their row in a scope of its own; without it nothing stays stored."""
    try:
        stored_name = file_storage.put(received.path, tenant_id)
    finally:
        received.path.unlink(missing_ok=True)
    try:
        with tenant_scope(tenant_id):
            row = write(stored_name)
    except SilasError:  # after any other error the row may have been committed, and the sweep decides
        file_storage.storage().delete(stored_name)
        raise
    # It is the repetition's row: these bytes have none.
    if row.stored_name != stored_name:
        file_storage.storage().delete(stored_name)
    return row


def _taken(session_id: UUID) -> tuple[set[str], int]:
    session: ChatSession | None = ChatSession.objects.filter(pk=session_id).first()
    offers = offers_of(session.deployment_id) if session else None
    if offers is None or not taken_kinds(offers):
        raise NotFound()
    return set(taken_kinds(offers)), most_bytes(offers)


def receive(name: str, chunks: Iterable[bytes], taken: Collection[str], most: int, *, is_read: bool = True) -> Received:
    """Bytes on the disk, examined outside of a transaction, and with `is_read` their text. Raises `SilasError`: 400
    `file_kind`, 413 `file_too_large`, 503 where it cannot be looked at now."""
    try:
        path, digest, size = file_storage.receive(chunks, most=most)
    except file_storage.TooLarge:
        extra = {"most_bytes": most}
        raise SilasError(ErrorCode.FILE_TOO_LARGE, extra=extra) from None
    try:
        kind = file_types.kind_of(path, name) if size else None
        if kind is None or kind.name not in taken:
            raise SilasError(ErrorCode.FILE_KIND)
        text = attachments.extract_text(path, kind, size) if is_read else attachments.FileText()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Received(path, digest, size, file_types.clean_name(name, kind), kind, text)


def _write(session_id: UUID, received: Received, client_id: str, stored_name: str) -> VisitorFile:
    session = lock_session(session_id)
    # Asked again under the lock: a repetition may have stored the file meanwhile.
    if before := sent_before(session_id, client_id):
        return before
    require_room(session, received.size, sender=Sender.VISITOR, most=offers_of(session.deployment_id).files_each)
    row = append_file(session, received, client_id=client_id, stored_name=stored_name, sender=Sender.VISITOR)
    data = {"file": str(row.pk), "kind": row.kind, "bytes": row.size}
    record(AuditEvent.FILE_KEPT, actor="visitor", subject=f"session:{session_id}", data=data)
    return row


def append_file(
    session: ChatSession,
    received: Received,
    *,
    client_id: str,
    stored_name: str,
    sender: Sender,
    author: User | None = None,
) -> VisitorFile:
    """Write the row and the entry in the conversation, which the caller has locked."""
    row = VisitorFile(session=session, digest=received.digest, client_id=client_id, created_at=now(), sender=sender)
    row.stored_name = stored_name
    row.name, row.kind, row.size = received.name, received.kind.name, received.size
    row.text, row.problem = received.text.text, received.text.problem
    session.preview, session.last_sender = rules.preview_of(row.name), sender
    payload = {"file_id": str(row.pk), "name": row.name, "kind": row.kind, "size": row.size}
    if author:
        payload["author"] = author.display_name
    taint = Taint.EXTERNAL if sender == Sender.VISITOR else Taint.AUTH
    row.seq = chronicle.append(
        session, kind=EntryKind.FILE, sender=sender, text=row.name, payload=payload, taint=taint, author=author
    ).seq
    row.save(force_insert=True)
    return row


def require_room(session: ChatSession, size: int, *, sender: Sender, most: int) -> None:
    """Raises 409 `conversation_full`, or `files_full` where `sender` has sent `most` files or the company has no room
    left."""
    if session.seq >= settings.MAX_CHRONICLE:
        raise SilasError(ErrorCode.CONVERSATION_FULL)
    here = VisitorFile.objects.filter(session=session, sender=sender).count()
    held = VisitorFile.objects.aggregate(bytes=Sum("size"))["bytes"] or 0
    if here >= most or held + size > settings.VISITOR_FILES_BYTES:
        raise SilasError(ErrorCode.FILES_FULL)


def sent_before(session_id: UUID, client_id: str) -> VisitorFile | None:
    row: VisitorFile | None = VisitorFile.objects.filter(session_id=session_id, client_id=client_id).first()
    return row


def file_of(session_id: UUID, file_id: UUID) -> tuple[VisitorFile, File[bytes]]:
    """The file and its bytes, opened. Raises `NotFound`, also for one of another conversation or a forgotten one."""
    row: VisitorFile | None = VisitorFile.objects.filter(pk=file_id, session_id=session_id).first()
    if row is None:
        raise NotFound()
    try:
        return row, file_storage.storage().open(row.stored_name)
    except FileNotFoundError:
        raise NotFound() from None


def kept_in(session_id: UUID) -> set[UUID]:
    """Which files of this conversation are still there."""
    return set(VisitorFile.objects.filter(session_id=session_id).values_list("pk", flat=True))
