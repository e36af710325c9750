"""Save the filter of a list under a name, for one member or for the team; rename and delete it.

A view holds parameters that its page has read and understood, never an address. What a page understands is the page's
own knowledge: it registers a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox.enums import ViewPage
from apps.inbox.staff import Staff, member_of, require_staff
from apps.inbox.view_models import SavedView
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.named_rows import require_room, save_named, sound_name

MAX_NAME, MAX_VIEWS = 60, 50

Reader = Callable[[Mapping[str, str]], dict[str, str]]
_READERS: dict[ViewPage, Reader] = {}


def register_page(page: ViewPage, reader: Reader) -> None:
    """`reader` returns the parameters of the page's filter that differ from the whole list, and raises `ValueError` for
    a parameter or value that the page does not know."""
    _READERS[page] = reader


def views_for(by: Staff, page: ViewPage | None = None) -> list[SavedView]:
    """The team's views and those of this member, by name; of one page or of all."""
    rows = _visible(by).select_related("owner")
    return list(rows.filter(page=page) if page else rows)


def view_for(by: Staff, view_id: UUID) -> SavedView:
    """Raises `NotFound` for an unknown or foreign id, and for a colleague's own view."""
    view: SavedView | None = _visible(by).select_related("owner").filter(pk=view_id).first()
    if view is None:
        raise NotFound()
    return view


def lock_view(by: Staff, view_id: UUID) -> SavedView:
    """The view, locked for a change by who may make it: its member, and for the team's who may answer. Raises as
    `view_for`, and 403 `forbidden_role`."""
    view: SavedView | None = _visible(by).select_for_update(of=("self",), no_key=True).filter(pk=view_id).first()
    if view is None:
        raise NotFound()
    if view.owner_id is None:
        require_staff(by)
    return view


def save_view(
    by: Staff,
    *,
    name: str,
    page: ViewPage,
    parameters: Mapping[str, str],
    is_personal: bool = True,
    view_id: UUID | None = None,
) -> SavedView:
    """A new view, or the one with this id as it is from now on. Raises 400 `bad_name` and `bad_view`, 409 `name_taken`
    and `too_many`. Every member has views of their own, programs have none; the team's are changed by who may answer.
    """
    name = sound_name(name, MAX_NAME)
    view = lock_view(by, view_id) if view_id else SavedView()
    owner = member_of(by) if is_personal else None
    if not is_personal:
        require_staff(by)
    elif owner is None or (view_id and view.owner_id is None):
        raise SilasError(ErrorCode.FORBIDDEN_ROLE, gettext("A view of the team can't be made personal."))
    if view_id is None:
        require_room(SavedView.objects.filter(owner=owner), MAX_VIEWS)
    try:
        view.parameters = _READERS[page](parameters)
    except ValueError:
        raise SilasError(ErrorCode.BAD_VIEW) from None
    view.name, view.page, view.owner = name, page, owner
    save_named(view)
    record(AuditEvent.VIEW_SAVED, actor=by.actor, subject=f"view:{view.pk}", data={"page": view.page})
    return view


def delete_view(by: Staff, view_id: UUID) -> None:
    lock_view(by, view_id).delete()
    record(AuditEvent.VIEW_DELETED, actor=by.actor, subject=f"view:{view_id}")


def _visible(by: Staff) -> QuerySet[SavedView]:
    team, member = Q(owner=None), member_of(by)
    rows: QuerySet[SavedView] = SavedView.objects.filter(team | Q(owner=member) if member else team)
    return rows
