"""Send a file to the visitor, as a reply of the member or API client that has taken over.

Its bytes pass the checks of visitors' files, of every kind that can be taken at all; the row, the entry in the
conversation and the audit entry are one transaction, and the same `nonce` sends a file once. No model reads it, so its
text is not extracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, uuid4

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox.handoff import client_id_of, require_answering
from apps.inbox.staff import Staff, member_of, require_staff
from apps.sessions.enums import Sender
from apps.sessions.locks import lock_session
from apps.sessions.queries import session_by_id
from apps.visitors import files
from apps.visitors.file_types import KINDS
from apps.visitors.models import VisitorFile
from kernel.tenancy import tenant_scope

MOST_BYTES = 20 * 1024 * 1024
MOST_FILES = 100
ENDINGS = tuple(ending for kind in KINDS.values() for ending in kind.endings)


def send_file(
    tenant_id: UUID, session_id: UUID, by: Staff, *, name: str, chunks: Iterable[bytes], nonce: str = ""
) -> VisitorFile:
    """Opens its own scopes, and looks at no byte for those who may not answer here. Raises as `handoff.reply`, and
    `SilasError`: 400 `file_kind`, 413 `file_too_large`, 409 `files_full`, `conversation_full`, 503 where it cannot be
    looked at now."""
    client_id = client_id_of(nonce or uuid4().hex)
    with tenant_scope(tenant_id):
        require_staff(by)
        require_answering(session_by_id(session_id), by)
        if before := files.sent_before(session_id, client_id):
            return before
    received = files.receive(name, chunks, KINDS, MOST_BYTES, is_read=False)
    return files.store(tenant_id, received, lambda stored: _write(session_id, by, received, client_id, stored))


def _write(session_id: UUID, by: Staff, received: files.Received, client_id: str, stored_name: str) -> VisitorFile:
    require_staff(by)
    session = lock_session(session_id)
    require_answering(session, by)
    if before := files.sent_before(session_id, client_id):
        return before
    files.require_room(session, received.size, sender=Sender.HUMAN, most=MOST_FILES)
    row = files.append_file(
        session,
        received,
        client_id=client_id,
        stored_name=stored_name,
        sender=Sender.HUMAN,
        author=member_of(by),
    )
    data = {"seq": row.seq, "file": str(row.pk), "kind": row.kind, "bytes": row.size}
    record(AuditEvent.STAFF_REPLIED, actor=by.actor, subject=f"session:{session_id}", data=data)
    return row
