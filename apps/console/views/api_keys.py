"""API keys: made, shown once, revoked. For owners, because a key may what owners may."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.views.pages import mark_of, page
from apps.tenants import queries, services
from apps.tenants.enums import Capability
from kernel.errors import SilasError


def _shown(request: StaffRequest, refusal: SilasError | None = None, *_: Any, **more: Any) -> HttpResponseBase:
    return page(
        request,
        "console/api_keys.html",
        at="api-keys",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        keys=queries.list_api_keys(),
        made=more.get("made"),
    )


@require_safe
@staff_view(Capability.MANAGE_API_KEYS)
def api_keys(request: StaffRequest) -> HttpResponseBase:
    return _shown(request)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_shown)
def make(request: StaffRequest) -> HttpResponseBase:
    """The page with the key is the answer to the form alone: loaded again, it is the list."""
    if request.method != "POST":
        return redirect("console-api-keys")
    name = " ".join(request.POST.get("name", "").replace("\0", "").split())[:80]
    if not name:
        raise SilasError("no_name", "Say what the key is for.", status=409)
    made = services.create_api_key(name, actor=f"user:{request.member.user.pk}", once=mark_of(request))
    return _shown(request, made=made) if made.key else redirect("console-api-keys")


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_shown)
def revoke(request: StaffRequest, key_id: UUID) -> HttpResponseBase:
    services.revoke_api_key(queries.get_api_key(key_id), actor=f"user:{request.member.user.pk}")
    return redirect("console-api-keys")
