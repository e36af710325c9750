"""Lists as CSV files: what a page lists, with the filters in the address of the page, for the roles that see it."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.console.csv_response import csv_response
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.exports.lists import LISTS
from apps.tenants.rules import forbidden_role
from kernel.errors import NotFound


@require_safe
@staff_view()
def list_file(request: StaffRequest, name: str) -> HttpResponseBase:
    """The list as a file. Raises `NotFound` for an unknown one, 403 for a role that does not see the page, and 422
    `export_too_large`."""
    chosen = LISTS.get(name)
    if chosen is None:
        raise NotFound()
    if request.member.role not in chosen.roles:
        raise forbidden_role(chosen.roles)
    response: HttpResponse = csv_response(
        f"{name}-{timezone.localdate().isoformat()}", chosen.columns, chosen.rows(request.member, request.GET)
    )
    data = {"list": name, "rows": response.__dict__["rows"]}
    record(AuditEvent.LIST_EXPORTED, actor=request.member.user.actor, data=data)
    return response
