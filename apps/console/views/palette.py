"""Where is it? The palette's answer to what is being typed, as the part that its list consists of."""

from __future__ import annotations

from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from apps.console.finding import found
from apps.console.members import StaffRequest, staff_view


@require_safe
@staff_view()
def palette(request: StaffRequest) -> HttpResponseBase:
    """Pages and things that answer to `q`; what the member's role may not open is not among them."""
    said = request.GET.get("q", "")
    response = TemplateResponse(request, "console/_palette.html", {"groups": found(request.member, said), "said": said})
    patch_cache_control(response, private=True, no_store=True)
    return response
