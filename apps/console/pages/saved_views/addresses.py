"""Where saved views lead, and what the inbox and Review list of them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.urls import reverse

from apps.console.members import StaffRequest
from apps.inbox import saved_views
from apps.inbox.enums import ViewPage
from apps.inbox.models import SavedView

_PAGES = {ViewPage.INBOX: "console-inbox", ViewPage.REVIEW: "console-review"}


def address_of(view: SavedView) -> str:
    place, query = reverse(_PAGES[ViewPage(view.page)]), urlencode(view.parameters)
    return f"{place}?{query}" if query else place


def views_menu(request: StaffRequest, page: ViewPage, parameters: Mapping[str, str]) -> dict[str, object]:
    """Return what `_saved_views.html` shows on a page whose filter is `parameters`."""
    views = saved_views.views_for(request.member.user, page)
    return {
        "views": [(view, address_of(view), view.parameters == parameters) for view in views],
        "view_page": page,
        "view_query": urlencode(parameters),
    }
