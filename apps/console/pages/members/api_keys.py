"""API keys: created, shown once, revoked. For owners, because a key can do what owners can."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import idempotency_key, page
from apps.console.members import StaffRequest, staff_view
from apps.tenants import queries, services
from apps.tenants.enums import Capability
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


def _render(request: StaffRequest, refusal: SilasError | None = None, *_: Any, **more: Any) -> HttpResponseBase:
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
    return _render(request)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def make(request: StaffRequest) -> HttpResponseBase:
    """Create a key. The key is only in the answer to this form; reloading shows the list."""
    if request.method != "POST":
        return redirect("console-api-keys")
    name = " ".join(request.POST.get("name", "").replace("\0", "").split())[:80]
    if not name:
        raise SilasError(ErrorCode.NO_NAME)
    created = services.create_api_key(name, actor=f"user:{request.member.user.pk}", once=idempotency_key(request))
    return _render(request, made=created) if created.key else redirect("console-api-keys")


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def revoke(request: StaffRequest, key_id: UUID) -> HttpResponseBase:
    services.revoke_api_key(queries.get_api_key(key_id), actor=f"user:{request.member.user.pk}")
    return redirect("console-api-keys")
