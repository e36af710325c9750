"""The message that asks an IT department to allow an account (spec 5.10.4).

The draft is made of the rows alone, never of a script's words. Staff read it, change it, copy it, or have it sent by
work that needs an approval like any other; nothing is sent from here. In web processes, inside the caller's tenant
scope.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import rules
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, ItRequest
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

_ADDRESS = re.compile(r"[^@\s,;<>]{1,64}@[A-Za-z0-9.-]{1,180}\Z")
MOST_TEXT, MOST_SUBJECT = 10_000, 200


def draft(row: Connection, *, actor: str) -> ItRequest:
    """Return the draft about this connection; an existing one keeps its changes."""
    subject, text = draft_text(row)
    request: ItRequest
    request, created = ItRequest.objects.get_or_create(
        connection=row, defaults={"subject": subject, "text": text, "changed_by": actor}
    )
    if created:
        record(AuditEvent.IT_REQUEST_DRAFTED, actor=actor, subject=f"connection:{row.pk}")
    return request


def update(connection_id: UUID, *, to: str, subject: str, text: str, user: User, actor: str) -> ItRequest:
    """Change the draft. Raises `SilasError`: `it_request_missing` 409, `it_request_unfit` 422, 403 for a member who may
    not decide."""
    require_role(user, roles_with(Capability.DECIDE))
    lock_connection(connection_id)
    row: ItRequest | None = ItRequest.objects.filter(connection_id=connection_id).first()
    if row is None:
        raise SilasError(ErrorCode.IT_REQUEST_MISSING)
    to, subject, text = to.strip(), " ".join(subject.split()), text.replace("\r\n", "\n").strip()
    if to and not _ADDRESS.match(to):
        raise SilasError(ErrorCode.IT_REQUEST_UNFIT, gettext("Enter one valid email address."))
    if not 0 < len(subject) <= MOST_SUBJECT or not 0 < len(text) <= MOST_TEXT:
        message = gettext("Enter a subject of up to {subject} characters and a text of up to {text}.").format(
            subject=MOST_SUBJECT, text=MOST_TEXT
        )
        raise SilasError(ErrorCode.IT_REQUEST_UNFIT, message)
    row.to, row.subject, row.text, row.changed_by, row.changed_at = to, subject, text, actor, now()
    row.save(update_fields=["to", "subject", "text", "changed_by", "changed_at"])
    return row


def set_work_item(row: ItRequest, work_item_id: UUID) -> None:
    """Remember the work that sends the message as it is now."""
    ItRequest.objects.filter(pk=row.pk).update(work_item_id=work_item_id)


def draft_text(row: Connection) -> tuple[str, str]:
    """Return subject and text: which application asks, for which permissions and why, and where an administrator
    consents for everybody."""
    settings: Mapping[str, object] = row.settings
    reasons = {name: "to read" if rules.only_reads(name) else "to change or send" for name in row.initial_permissions}
    lines = [
        f"We would like to connect {row.name} to our assistant, and your policy does not allow it yet.",
        "",
        f"Application (client) ID: {settings.get('client_id', 'see the settings of the connection')}",
        f"Redirect address: {row.callback or 'none'}",
        "Requested permissions, and why:",
        *[f"- {name}: {reason}" for name, reason in reasons.items()],
    ]
    consent = settings.get("admin_consent_url")
    text = "\n".join([*lines, *([f"Consent for the organization: {consent}"] if consent else [])])
    return f"Please allow {row.provider or row.skill_name} for our assistant"[:MOST_SUBJECT], text[:MOST_TEXT]
