"""Trusted publishers of skill packages: their keys with fingerprints, which owners add and remove.

A new key is shown as its fingerprint first; typing part of it makes sure that it was compared.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.skills.models import TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from apps.tenants.enums import Role
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def publishers(request: StaffRequest) -> HttpResponseBase:
    """List the publishers; a POST only shows the fingerprint of a key."""
    form, refusal = _given(request), None
    if request.method == "POST":
        try:
            form["fingerprint"] = archive.fingerprint(packages.parse_public_key(form["key"])).split()
        except SilasError as caught:
            refusal = caught
    return _page(request, form, refusal)


@require_POST
@staff_view(Role.OWNER)
def pin(request: StaffRequest) -> HttpResponseBase:
    form = _given(request)
    try:
        packages.pin_publisher(
            form["key"], name=form["name"], last=request.POST.get("last", ""), by=request.member.user
        )
    except SilasError as refusal:
        if refusal.code == ErrorCode.FINGERPRINT_DIFFERS:
            form["fingerprint"] = archive.fingerprint(packages.parse_public_key(form["key"])).split()
        return _page(request, form, refusal)
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
    request: StaffRequest, form: dict[str, Any], refusal: SilasError | None, *, unsure: UUID | None = None
) -> HttpResponseBase:
    rows = list(TrustedPublisher.objects.all()[:200])
    names = names_for([row.trusted_by for row in rows])
    return page(
        request,
        "console/publishers.html",
        at="skills",
        status=422 if refusal or unsure else 200,
        rows=[(row, archive.fingerprint(row.public_key), names.of(row.trusted_by)) for row in rows],
        given=form,
        refusal=refusal,
        unsure=unsure,
    )
