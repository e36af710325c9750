"""Whose skill packages are taken here? The pinned keys with their fingerprints; owners pin one and take one away.

A key that somebody sent is shown as its fingerprint first; whoever types from it has looked at it.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.views.pages import page
from apps.skills.models import TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from apps.tenants.enums import Role
from kernel.errors import SilasError


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def publishers(request: StaffRequest) -> HttpResponseBase:
    """A post only shows the fingerprint of a key; nothing is pinned by it."""
    given, refusal = _given(request), None
    if request.method == "POST":
        try:
            given["fingerprint"] = archive.fingerprint(packages.parse_public_key(given["key"])).split()
        except SilasError as caught:
            refusal = caught
    return _page(request, given, refusal)


@require_POST
@staff_view(Role.OWNER)
def pin(request: StaffRequest) -> HttpResponseBase:
    given = _given(request)
    try:
        packages.pin_publisher(
            given["key"], name=given["name"], last=request.POST.get("last", ""), by=request.member.user
        )
    except SilasError as refusal:
        if refusal.code == "fingerprint_differs":
            given["fingerprint"] = archive.fingerprint(packages.parse_public_key(given["key"])).split()
        return _page(request, given, refusal)
    return redirect("console-publishers")


@require_POST
@staff_view(Role.OWNER)
def remove(request: StaffRequest, publisher_id: UUID) -> HttpResponseBase:
    if request.POST.get("sure") != str(publisher_id):
        return _page(request, {}, None, unsure=publisher_id)
    packages.distrust_publisher(publisher_id, actor=request.member.user.actor)
    return redirect("console-publishers")


def _given(request: StaffRequest) -> dict[str, Any]:
    return {name: request.POST.get(name, "").strip()[:200] for name in ("name", "key")}


def _page(
    request: StaffRequest, given: dict[str, Any], refusal: SilasError | None, *, unsure: UUID | None = None
) -> HttpResponseBase:
    rows = list(TrustedPublisher.objects.all()[:200])
    called = names_for([row.trusted_by for row in rows])
    return page(
        request,
        "console/publishers.html",
        at="skills",
        status=422 if refusal or unsure else 200,
        rows=[(row, archive.fingerprint(row.public_key), called.of(row.trusted_by)) for row in rows],
        given=given,
        refusal=refusal,
        unsure=unsure,
    )
