"""Create, change, delete and run macros. A personal macro is its owner's alone; others are everybody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox import steps as steps_of
from apps.inbox.models import Macro
from apps.inbox.staff import Staff, member_of, require_staff
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.named_rows import require_room, save_named, sound_name

MAX_NAME, MAX_MACROS = 60, 200


def macros_for(by: Staff) -> list[Macro]:
    """Everybody's macros, and those of this member."""
    return list(_visible(by).select_related("owner"))


def macro_for(by: Staff, macro_id: UUID) -> Macro:
    """Raises `NotFound` for an unknown or foreign id, and for a colleague's personal macro."""
    macro: Macro | None = _visible(by).filter(pk=macro_id).first()
    if macro is None:
        raise NotFound()
    return macro


def lock_macro(by: Staff, macro_id: UUID) -> Macro:
    """The macro, locked for a change by who may make it. Raises as `macro_for`, and 403 `forbidden_role`."""
    require_staff(by)
    macro: Macro | None = _visible(by).select_for_update(of=("self",), no_key=True).filter(pk=macro_id).first()
    if macro is None:
        raise NotFound()
    return macro


def save_macro(
    by: Staff,
    *,
    name: str,
    steps: Sequence[Mapping[str, object]],
    is_personal: bool = False,
    macro_id: UUID | None = None,
) -> Macro:
    """A new macro, or the one with this id as it is from now on. Raises 400 `bad_name` and `bad_steps`, 409
    `name_taken` and `too_many`. Programs have no personal macros."""
    require_staff(by)
    name = sound_name(name, MAX_NAME)
    macro = lock_macro(by, macro_id) if macro_id else Macro()
    owner = member_of(by) if is_personal else None
    if is_personal and (owner is None or (macro_id and macro.owner_id is None)):
        raise SilasError(ErrorCode.FORBIDDEN_ROLE, gettext("A shared macro can't be made personal."))
    if macro_id is None:
        require_room(Macro.objects.filter(owner=owner), MAX_MACROS)
    macro.name, macro.steps, macro.owner = name, steps_of.sound(steps), owner
    save_named(macro)
    record(AuditEvent.MACRO_SAVED, actor=by.actor, subject=f"macro:{macro.pk}", data={"steps": len(macro.steps)})
    return macro


def delete_macro(by: Staff, macro_id: UUID) -> None:
    lock_macro(by, macro_id).delete()
    record(AuditEvent.MACRO_DELETED, actor=by.actor, subject=f"macro:{macro_id}")


def run_macro(session_id: UUID, by: Staff, macro_id: UUID, *, nonce: str = "", steps_hash: str | None = None) -> str:
    """Carry out the macro's steps, all or none; returns the reply that is to be put before the member, if any.

    The same `nonce` twice writes its notes once. Raises 409 `macro_changed` for steps with another `steps_hash`
    (`steps.hash_of`) than the one that was previewed, if there is one.
    """
    require_staff(by)
    macro = macro_for(by, macro_id)
    if steps_hash is not None and steps_hash != steps_of.hash_of(macro.steps):
        raise SilasError(ErrorCode.MACRO_CHANGED)
    draft = steps_of.run(macro.steps, session_id, by, nonce=nonce)
    record(AuditEvent.MACRO_RUN, actor=by.actor, subject=f"session:{session_id}", data={"macro": str(macro.pk)})
    return draft


def _visible(by: Staff) -> QuerySet[Macro]:
    rows: QuerySet[Macro] = Macro.objects.filter(Q(owner=None) | Q(owner=member_of(by)))
    return rows
