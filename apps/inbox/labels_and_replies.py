"""Create, change and delete the tenant's labels and canned replies."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox.enums import Colour
from apps.inbox.handoff import writable
from apps.inbox.models import CannedReply, Label
from apps.inbox.staff import Staff, require_staff
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.named_rows import require_room, save_named, sound_name

MAX_NAME = 40
# More than a menu can show.
MAX_LABELS, MAX_REPLIES = 50, 200


def lock_label(by: Staff, label_id: UUID) -> Label:
    """The label, locked for a change by who may make it. Raises `NotFound`, 403 `forbidden_role`."""
    require_staff(by)
    return _locked(Label, label_id)  # type: ignore[no-any-return]  # the manager is untyped


def save_label(by: Staff, *, name: str, colour: str, label_id: UUID | None = None) -> Label:
    """A new label, or another name or colour of the one with this id."""
    require_staff(by)
    if colour not in Colour.values:
        raise SilasError(ErrorCode.BAD_COLOUR)
    label = lock_label(by, label_id) if label_id else _new(Label, MAX_LABELS)
    label.name, label.colour = _free_name(Label, name, label.pk), colour
    save_named(label)
    record(AuditEvent.LABEL_SAVED, actor=by.actor, subject=f"label:{label.pk}", data={"colour": colour})
    return label


def delete_label(by: Staff, label_id: UUID) -> None:
    """The label goes from every conversation that bears it."""
    lock_label(by, label_id).delete()
    record(AuditEvent.LABEL_DELETED, actor=by.actor, subject=f"label:{label_id}")


def lock_reply(by: Staff, reply_id: UUID) -> CannedReply:
    """The canned reply, locked for a change by who may make it. Raises `NotFound`, 403 `forbidden_role`."""
    require_staff(by)
    return _locked(CannedReply, reply_id)  # type: ignore[no-any-return]  # the manager is untyped


def save_reply(by: Staff, *, name: str, text: str, reply_id: UUID | None = None) -> CannedReply:
    """A new canned reply, or other words of the one with this id."""
    require_staff(by)
    reply = lock_reply(by, reply_id) if reply_id else _new(CannedReply, MAX_REPLIES)
    reply.name, reply.text = _free_name(CannedReply, name, reply.pk), writable(text)
    save_named(reply)
    record(AuditEvent.CANNED_REPLY_SAVED, actor=by.actor, subject=f"canned_reply:{reply.pk}")
    return reply


def delete_reply(by: Staff, reply_id: UUID) -> None:
    lock_reply(by, reply_id).delete()
    record(AuditEvent.CANNED_REPLY_DELETED, actor=by.actor, subject=f"canned_reply:{reply_id}")


def _locked(model: Any, given: UUID) -> Any:
    row = model.objects.select_for_update(of=("self",), no_key=True).filter(pk=given).first()
    if row is None:
        raise NotFound()
    return row


def _new(model: Any, most: int) -> Any:
    require_room(model.objects.all(), most)
    return model()


def _free_name(model: Any, name: str, own: UUID) -> str:
    """One line of 1 to 40 characters that no other row of the tenant is called."""
    name = sound_name(name, MAX_NAME)
    if model.objects.filter(name__iexact=name).exclude(pk=own).exists():
        raise SilasError(ErrorCode.NAME_TAKEN)
    return name
