"""The Settings area: everything that a team sets up once, in groups, each page in the room it belongs to."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.navigation import settings_for

MAX_CHARS = 80


@require_safe
@staff_view()
def overview(request: StaffRequest) -> HttpResponseBase:
    """List the pages of Settings that the member may open; with `q` those that match."""
    words = " ".join(request.GET.get("q", "").replace("\0", "")[:MAX_CHARS].split())
    groups = settings_for(request.member, words)
    return page(request, "console/settings.html", at="settings", groups=groups, words=words)
