"""Your account → Approval keys: with what do you sign, and with which passkeys do you show that it is you?

A passkey is added and removed with the password, so that whoever only has the open session can do neither. What the
browser is asked, and what it answered, are JSON; a refusal is the coded JSON of every API.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import queries
from apps.approvals.schemas import AnswerRefused
from apps.approvals.services import passkeys, rotate_key
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.proving import place_of, require_password
from apps.console.views.pages import page
from kernel import webauthn
from kernel.errors import SilasError

View = Callable[..., HttpResponseBase]


def in_json(view: View) -> View:
    """Answer a refusal to the page's own script, which says it in words."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        refusal: SilasError | None = request.__dict__.get("refusal")
        return JsonResponse(refusal.as_json(), status=refusal.status) if refusal else response

    return answered


@require_safe
@staff_view()
def approval_keys(request: StaffRequest) -> HttpResponseBase:
    user, (here, _) = request.member.user, place_of(request)
    return page(
        request,
        "console/passkeys.html",
        at="account",
        here=here,
        is_named=webauthn.is_domain_name(here),
        passkeys=queries.passkeys_of(user),
        key=queries.active_key(user),
    )


@require_POST
@sensitive_post_parameters("password")
@in_json
@staff_view()
def begin(request: StaffRequest) -> HttpResponseBase:
    """What the browser is asked to make a passkey with, for whoever knows the password."""
    require_password(request)
    rp_id, origin = place_of(request)
    return JsonResponse({"options": passkeys.begin_registration(request.member.user, rp_id=rp_id, origin=origin)})


@require_POST
@in_json
@staff_view()
def finish(request: StaffRequest) -> HttpResponseBase:
    name, credential = request.POST.get("name", ""), request.POST.get("credential", "")
    made = passkeys.finish_registration(request.member.user, name=name, credential=credential)
    if isinstance(made, AnswerRefused):
        return JsonResponse(SilasError(made.code, made.message).as_json(), status=409)
    return JsonResponse({"registered": True})


@require_POST
@sensitive_post_parameters("password")
@staff_view()
def remove(request: StaffRequest, passkey_id: UUID) -> HttpResponseBase:
    require_password(request)
    user = request.member.user
    passkeys.remove_passkey(passkey_id, user=user, actor=f"user:{user.pk}")
    return redirect("console-passkeys")


@require_POST
@staff_view()
def rename(request: StaffRequest, passkey_id: UUID) -> HttpResponseBase:
    passkeys.rename_passkey(passkey_id, user=request.member.user, name=request.POST.get("name", ""))
    return redirect("console-passkeys")


@require_POST
@sensitive_post_parameters("password")
@staff_view(*DECIDING_ROLES)
def replace_key(request: StaffRequest) -> HttpResponseBase:
    """A new signing key; `compromised` voids everything that the old one signed."""
    require_password(request)
    user = request.member.user
    rotate_key(user, actor=f"user:{user.pk}", compromised=request.POST.get("compromised") == "on")
    return redirect("console-passkeys")


@require_POST
@in_json
@staff_view(*DECIDING_ROLES)
def step_up_options(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """What the browser asks a passkey before this yes; `options` is null where none is needed."""
    rp_id, origin = place_of(request)
    face = request.POST.get("face", "")
    options = passkeys.begin_step_up(card_id, user=request.member.user, face=face, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})
