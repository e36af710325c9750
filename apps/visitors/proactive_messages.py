"""Create, change and delete a deployment's proactive messages, and put one into the conversation that answers it.

The browser chooses which of the active ones to show. What is shown is stored nowhere: the message becomes part of a
conversation together with the visitor's answer to it. Owners write its text, as they write the greeting, so no gate
judges it. Changes are in the audit log, texts as digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import F

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.enums import EntryKind, Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.visitors.models import ProactiveMessage
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import LANGUAGES, gettext
from kernel.named_rows import require_room
from kernel.unicode_safety import has_hidden_characters

MOST_MESSAGES = 20
FIELDS = ("text", "page", "seconds", "audience", "language", "repeat_days", "is_active")
_TEXTS = {"text", "page"}


def messages_of(deployment_id: UUID) -> list[ProactiveMessage]:
    return list(ProactiveMessage.objects.filter(deployment_id=deployment_id))


def message_of(deployment_id: UUID, message_id: UUID, *, lock: bool = False) -> ProactiveMessage:
    """`lock`: for a change. Raises `NotFound` for an unknown id, or one of another deployment."""
    rows = ProactiveMessage.objects.select_for_update(of=("self",), no_key=True) if lock else ProactiveMessage.objects
    row: ProactiveMessage | None = rows.filter(deployment_id=deployment_id, pk=message_id).first()
    if row is None:
        raise NotFound()
    return row


def shown_to_visitors(deployment_id: UUID) -> list[dict[str, object]]:
    """What the widget is told: the active messages and when to show them."""
    names = ("text", "page", "seconds", "audience", "language", "repeat_days")
    rows = ProactiveMessage.objects.filter(deployment_id=deployment_id, is_active=True)
    return [{"id": str(row.pk), **{name: getattr(row, name) for name in names}} for row in rows]


def create(deployment: Deployment, *, actor: str, **fields: Any) -> ProactiveMessage:
    """`deployment` is locked. Raises `SilasError("invalid_offers")` with the problem of each field, 409 `too_many`."""
    require_room(ProactiveMessage.objects.filter(deployment=deployment), MOST_MESSAGES)
    row = ProactiveMessage(deployment=deployment)
    _save(row, fields, actor=actor)
    return row


def change(row: ProactiveMessage, *, actor: str, **fields: Any) -> ProactiveMessage:
    """`row` is locked. Writes what differs. Raises `SilasError("invalid_offers")`."""
    _save(row, fields, actor=actor)
    return row


def delete(row: ProactiveMessage, *, actor: str) -> None:
    """`row` is locked. Conversations keep what was said in them."""
    deployment_id, message_id = row.deployment_id, row.pk
    row.delete()
    _record(deployment_id, actor=actor, data={"proactive_message": str(message_id), "deleted": True})


def copy(source: Deployment, target: Deployment, *, actor: str) -> None:
    """Create at `target`, which is new, what `source` has."""
    for row in messages_of(source.pk):
        create(target, actor=actor, **{name: getattr(row, name) for name in FIELDS})


def opening_of(session: ChatSession, message_id: UUID) -> str:
    """The text of the message that the visitor of the locked `session` answers, and count the answer. Empty where a
    person answers, where the conversation has the message already, and for one that its deployment does not show."""
    if session.owner != Owner.BOT:
        return ""
    row: ProactiveMessage | None = ProactiveMessage.objects.filter(
        deployment_id=session.deployment_id, pk=message_id, is_active=True
    ).first()
    same = {"session": session, "kind": EntryKind.MESSAGE, "payload__proactive_message": str(message_id)}
    if row is None or ChronicleEntry.objects.filter(**same).exists():
        return ""
    if not session.is_test:
        ProactiveMessage.objects.filter(pk=row.pk).update(answered_count=F("answered_count") + 1)
    return row.text


def problems_of(row: ProactiveMessage) -> dict[str, str]:
    """What is wrong with a message, by field."""
    problems: dict[str, str] = {}
    try:
        row.clean_fields(exclude={"deployment", "tenant"})
    except ValidationError as error:
        problems = {name: " ".join(said) for name, said in error.message_dict.items()}
    if row.language and row.language not in LANGUAGES:
        problems["language"] = gettext("Choose one of the languages of the chat.")
    if has_hidden_characters(row.text):
        problems["text"] = gettext("This contains characters that can't be displayed.")
    return problems


def _save(row: ProactiveMessage, fields: Mapping[str, Any], *, actor: str) -> None:
    before = {name: getattr(row, name) for name in FIELDS}
    for name in FIELDS:
        setattr(row, name, fields.get(name, before[name]))
    row.text = " ".join(str(row.text).split())
    row.page = str(row.page).strip().removeprefix("https://").removeprefix("http://")
    if problems := problems_of(row):
        raise SilasError(ErrorCode.INVALID_OFFERS, " ".join(problems.values()), extra={"fields": problems})
    changed = [name for name in FIELDS if row._state.adding or before[name] != getattr(row, name)]
    if not changed:
        return
    row.save()
    data = {name: [_told(name, before[name]), _told(name, getattr(row, name))] for name in changed}
    _record(row.deployment_id, actor=actor, data={"proactive_message": str(row.pk), "changed": data})


def _record(deployment_id: UUID, *, actor: str, data: dict[str, object]) -> None:
    record(AuditEvent.OFFERS_CHANGED, actor=actor, subject=f"deployment:{deployment_id}", data=data)


def _told(name: str, value: object) -> object:
    return sha256_hex(str(value))[:16] if name in _TEXTS and value else value
