"""Is it this person, beside or instead of the password? The second step of a login, and passkeys.

A code, a recovery code or a passkey ends the step; how often somebody may guess is counted by person, from everywhere
alike. The passkeys' answers come as JSON from the page's own script.
"""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.audit.enums import AuditEvent
from apps.console import throttle
from apps.console.coming_in import come_in, next_of, whose_turn
from apps.console.proving import place_of
from apps.tenants import login_passkeys, second_factors
from apps.tenants.enums import LoginMethod
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import User
from kernel.errors import SilasError

WRONG = "That code does not fit, or it was used already. Nothing was changed; try the newest one."


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def second(request: HttpRequest) -> HttpResponseBase:
    turn = whose_turn(request)
    if turn is None:
        return redirect("console-login")
    user, then = turn
    if request.method != "POST":
        return _form(request, user)
    if wait := throttle.wait_before_code("second", user.pk):
        return _form(request, user, f"Too many attempts. Wait {wait.words}, then log in again.", status=429)
    method = _shown(user, request.POST.get("code", "")[:40])
    if method is None:
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_REFUSED, data={"factor": "code"})
        return _form(request, user, WRONG, status=400)
    throttle.code_fitted("second", user.pk)
    come_in(request, user, method=method)
    return redirect(then)


def _shown(user: User, code: str) -> LoginMethod | None:
    """What the code was, and it is used now; None when it is none."""
    if "".join(code.split()).isdecimal():
        return LoginMethod.CODE if second_factors.use_totp(user, code) else None
    return LoginMethod.RECOVERY if second_factors.use_recovery_code(user, code) else None


def _form(request: HttpRequest, user: User, problem: str = "", *, status: int = 200) -> HttpResponseBase:
    here = place_of(request)[0]
    shown = {
        "problem": problem,
        "has_app": second_factors.has_totp(user),
        "has_passkey": any(one.rp_id == here for one in login_passkeys.passkeys_of(user)),
        "codes_left": second_factors.codes_left(user),
    }
    return render(request, "console/second.html", shown, status=status)


@require_POST
def begin_passkey(request: HttpRequest) -> HttpResponseBase:
    """What the browser asks a passkey: one of the person whose turn it is, or any (`step=first`)."""
    if not throttle.may_begin(request.META.get("REMOTE_ADDR", "")):
        return _refused(SilasError("too_many_attempts", "Too many attempts. Wait a quarter of an hour.", status=429))
    (rp_id, origin), user = place_of(request), _whose(request)
    try:
        options = login_passkeys.begin_login(request.session, rp_id=rp_id, origin=origin, user=user)
    except SilasError as refusal:
        return _refused(refusal)
    return JsonResponse({"options": options})


@require_POST
def finish_passkey(request: HttpRequest) -> HttpResponseBase:
    """In, and where to go. A passkey has made sure of its person: it is both factors in one."""
    turn, expected = whose_turn(request), _whose(request)
    try:
        user = login_passkeys.finish_login(
            request.session, credential=request.POST.get("credential", ""), user=expected
        )
    except SilasError as refusal:
        if expected is not None:
            record_in_all_tenants(expected, AuditEvent.SECOND_FACTOR_REFUSED, data={"factor": "passkey"})
        return _refused(refusal)
    then = turn[1] if turn and expected else next_of(request)
    come_in(request, user, method=LoginMethod.SECOND_PASSKEY if expected else LoginMethod.PASSKEY)
    return JsonResponse({"next": then})


def _whose(request: HttpRequest) -> User | None:
    """Raises nothing: whoever says that it is the second step and whose turn it is not is asked as a stranger."""
    turn = whose_turn(request) if request.POST.get("step") == "second" else None
    return turn[0] if turn else None


def _refused(refusal: SilasError) -> JsonResponse:
    return JsonResponse(refusal.as_json() | {"login": reverse("console-login")}, status=refusal.status)
