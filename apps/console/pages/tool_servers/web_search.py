"""Web search: its provider and terms, for owners. The key is never shown again."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.console.members import StaffRequest, staff_view
from apps.console.pages.tool_servers.views import show_listing
from apps.tenants.enums import Capability
from apps.toolservers.web import services
from kernel.errors import SilasError


@require_POST
@staff_view(Capability.ADMINISTER)
def save(request: StaffRequest) -> HttpResponseBase:
    sent = request.POST
    try:
        services.set_search(
            sent.get("provider", ""),
            key=sent.get("key", "").strip(),
            base_url=sent.get("base_url", "").strip(),
            domains=sent.get("domains", "").replace(",", " ").split(),
            level=sent.get("level", "").strip(),
            actor=_actor(request),
            **_numbers(sent),
        )
    except SilasError as refusal:
        return show_listing(request, search_refusal=refusal)
    return redirect("console-tool-servers")


@require_POST
@staff_view(Capability.ADMINISTER)
def remove(request: StaffRequest) -> HttpResponseBase:
    services.remove_search(actor=_actor(request))
    return redirect("console-tool-servers")


def _numbers(sent: Any) -> dict[str, Any]:
    """Return price and number of results. Raises `SilasError`: `search_terms` 422 for invalid numbers."""
    try:
        return {"most_results": int(sent.get("most_results") or "5"), "price": Decimal(sent.get("price") or "0")}
    except (InvalidOperation, ValueError):
        raise SilasError("search_terms", _("Enter numbers for price and maximum results."), status=422) from None


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
