"""Saved views: the list of them, and saving, renaming and deleting one."""

from __future__ import annotations

from urllib.parse import parse_qsl
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.saved_views.addresses import address_of
from apps.inbox import saved_views
from apps.inbox.enums import ViewPage
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


@require_safe
@staff_view()
def views_page(request: StaffRequest) -> HttpResponseBase:
    rows = [(row, address_of(row)) for row in saved_views.views_for(request.member.user)]
    return page(request, "console/views.html", at="inbox", saved=rows)


@require_POST
@staff_view()
def new_view(request: StaffRequest) -> HttpResponseBase:
    """Save the filter of the page that sent this, and show the page with it."""
    try:
        on = ViewPage(request.POST.get("page", ""))
    except ValueError:
        raise SilasError(ErrorCode.BAD_VIEW) from None
    view = saved_views.save_view(
        request.member.user,
        name=request.POST.get("name", ""),
        page=on,
        parameters=dict(parse_qsl(request.POST.get("query", "")[:2000])),
        is_personal="is_shared" not in request.POST,
    )
    return redirect(address_of(view))


@require_POST
@staff_view()
def rename_view(request: StaffRequest, view_id: UUID) -> HttpResponseBase:
    view = saved_views.lock_view(request.member.user, view_id)
    saved_views.save_view(
        request.member.user,
        name=request.POST.get("name", ""),
        page=ViewPage(view.page),
        parameters=view.parameters,
        is_personal=view.owner_id is not None,
        view_id=view.pk,
    )
    return redirect("console-views")


@require_POST
@staff_view()
def delete_view(request: StaffRequest, view_id: UUID) -> HttpResponseBase:
    saved_views.delete_view(request.member.user, view_id)
    return redirect("console-views")
