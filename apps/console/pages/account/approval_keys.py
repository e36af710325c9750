"""Approval keys: the signing key of a member's approvals, and the passkeys that confirm them.

Adding and removing a passkey needs the password, so that an open session alone is not enough. Requests to the browser
and its answers are JSON; refusals are JSON with a code, as in the API.
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
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.keys.services import rotate_key
from apps.approvals.passkeys import services as passkeys
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.login.reauthentication import passkey_origin, require_password
from kernel import webauthn
from kernel.errors import SilasError

View = Callable[..., HttpResponseBase]


def in_json(view: View) -> View:
    """Answer refusals of the view as JSON, for the page's own script."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: object) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        refusal: SilasError | None = request.__dict__.get("refusal")
        return JsonResponse(refusal.as_json(), status=refusal.status) if refusal else response

    return answered


@require_safe
@staff_view()
def approval_keys(request: StaffRequest) -> HttpResponseBase:
    user, (here, _) = request.member.user, passkey_origin(request)
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
    """Return the options for creating a passkey, after the password."""
    require_password(request)
    rp_id, origin = passkey_origin(request)
    return JsonResponse({"options": passkeys.begin_registration(request.member.user, rp_id=rp_id, origin=origin)})


@require_POST
@in_json
@staff_view()
def finish(request: StaffRequest) -> HttpResponseBase:
    name, credential = request.POST.get("name", ""), request.POST.get("credential", "")
    passkey = passkeys.finish_registration(request.member.user, name=name, credential=credential)
    if isinstance(passkey, AnswerRefused):
        return JsonResponse(SilasError(passkey.code, passkey.message).as_json(), status=409)
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
    """Replace the signing key; `compromised` revokes everything that the old one signed."""
    require_password(request)
    user = request.member.user
    rotate_key(user, actor=f"user:{user.pk}", compromised=request.POST.get("compromised") == "on")
    return redirect("console-passkeys")


@require_POST
@in_json
@staff_view(*DECIDING_ROLES)
def step_up_options(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Return the passkey options for approving this card; `options` is null where no passkey is needed."""
    rp_id, origin = passkey_origin(request)
    face = request.POST.get("face", "")
    options = passkeys.begin_step_up(card_id, user=request.member.user, face=face, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})
