"""The command palette: search results for what is typed."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.pages.palette.search import search


@require_safe
@staff_view()
def palette(request: StaffRequest) -> HttpResponseBase:
    """Return the pages and objects that match `q` and that the member's role may open."""
    words = request.GET.get("q", "")
    response = TemplateResponse(
        request, "console/_palette.html", {"groups": search(request.member, words), "words": words}
    )
    patch_cache_control(response, private=True, no_store=True)
    return response
