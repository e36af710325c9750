"""The second step of a login, and logging in with a passkey.

A code, a recovery code or a passkey completes the step; attempts are counted per person, from any address. Passkey
answers come as JSON from the page's own script.
"""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.audit.enums import AuditEvent
from apps.console.pages.login import ratelimit
from apps.console.pages.login.flow import log_in_user, next_address, pending_login
from apps.console.pages.login.reauthentication import passkey_origin
from apps.tenants import login_passkeys, second_factors
from apps.tenants.enums import LoginMethod
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import User
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ratelimit.addresses import address_of

WRONG = gettext_lazy("Wrong code, or it was already used. Try the newest code.")


@never_cache
@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def second(request: HttpRequest) -> HttpResponseBase:
    pending = pending_login(request)
    if pending is None:
        return redirect("console-login")
    user, then = pending
    if request.method != "POST":
        return _form(request, user)
    if wait := ratelimit.wait_before_code("second", user.pk):
        return _form(
            request, user, _("Too many attempts. Wait %(time)s, then log in again.") % {"time": wait.words}, status=429
        )
    method = _use_code(user, request.POST.get("code", "")[:40])
    if method is None:
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_REFUSED, data={"factor": "code"})
        return _form(request, user, str(WRONG), status=400)
    ratelimit.code_was_right("second", user.pk)
    log_in_user(request, user, method=method)
    return redirect(then)


def _use_code(user: User, code: str) -> LoginMethod | None:
    """Use up the code and return its kind; None for a wrong code."""
    if "".join(code.split()).isdecimal():
        return LoginMethod.CODE if second_factors.use_totp(user, code) else None
    return LoginMethod.RECOVERY if second_factors.use_recovery_code(user, code) else None


def _form(request: HttpRequest, user: User, problem: str = "", *, status: int = 200) -> HttpResponseBase:
    here = passkey_origin(request)[0]
    context = {
        "problem": problem,
        "has_app": second_factors.has_totp(user),
        "has_passkey": any(passkey.rp_id == here for passkey in login_passkeys.passkeys_of(user)),
        "codes_left": second_factors.codes_left(user),
    }
    return render(request, "console/second.html", context, status=status)


@require_POST
def begin_passkey(request: HttpRequest) -> HttpResponseBase:
    """Return passkey options: for the pending person, or for anyone (`step=first`)."""
    if not ratelimit.may_begin(address_of(request)):
        return _refused(SilasError(ErrorCode.TOO_MANY_ATTEMPTS, _("Too many attempts. Wait 15 minutes.")))
    (rp_id, origin), user = passkey_origin(request), _pending_user(request)
    try:
        options = login_passkeys.begin_login(request.session, rp_id=rp_id, origin=origin, user=user)
    except SilasError as refusal:
        return _refused(refusal)
    return JsonResponse({"options": options})


@require_POST
def finish_passkey(request: HttpRequest) -> HttpResponseBase:
    """Log in and return the next address. A passkey verifies its person, so it counts as both factors."""
    pending, expected = pending_login(request), _pending_user(request)
    try:
        user = login_passkeys.finish_login(
            request.session, credential=request.POST.get("credential", ""), user=expected
        )
    except SilasError as refusal:
        if expected is not None:
            record_in_all_tenants(expected, AuditEvent.SECOND_FACTOR_REFUSED, data={"factor": "passkey"})
        return _refused(refusal)
    then = pending[1] if pending and expected else next_address(request)
    log_in_user(request, user, method=LoginMethod.SECOND_PASSKEY if expected else LoginMethod.PASSKEY)
    return JsonResponse({"next": then})


def _pending_user(request: HttpRequest) -> User | None:
    """Return the pending person if this is the second step, else None."""
    pending = pending_login(request) if request.POST.get("step") == "second" else None
    return pending[0] if pending else None


def _refused(refusal: SilasError) -> JsonResponse:
    return JsonResponse(refusal.as_json() | {"login": reverse("console-login")}, status=refusal.status)
