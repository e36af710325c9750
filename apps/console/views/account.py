"""My account: name, password, second factors, and where one is logged in.

Whatever would let somebody else stay in takes the password again. Whoever came by their company's login changes
nothing here: the company speaks for its own house only. Members who lack the second factor that their tenant requires
come here before anything else; whoever runs the platform and belongs to no company looks after their login here too.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import Any
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.console import throttle
from apps.console.members import Member, StaffRequest, View, member_of, refused, staff_view
from apps.console.proving import place_of, require_password
from apps.console.views.login import password_problems
from apps.console.views.pages import page
from apps.console.views.passkeys import in_json
from apps.tenants import access, login_passkeys, logins, members, resets, second_factors
from kernel import webauthn
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_BY_COMPANY = SilasError(
    "provider_login", "You came by your company's login: your password and factors are looked after there.", status=403
)


# At which field a refusal is said, and not above the page.
_FIELDS = {"wrong_password": "password", "weak_password": "new_password", "wrong_code": "code"}


def _shown(request: StaffRequest, refusal: SilasError | None = None, *_: Any, **more: Any) -> HttpResponseBase:
    user, session, (here, _origin) = request.user, request.session, place_of(request)
    member: Member | None = getattr(request, "member", None)
    status = refusal.status if refusal else 200
    shown = {
        "person": user,
        "refusal": refusal,
        "wrong": _FIELDS.get(refusal.code, "") if refusal else "",
        "pressed": request.path,
        "here": here,
        "is_named": webauthn.is_domain_name(here),
        "by_company": bool(session.get(access.ONLY_TENANT)),
        "lacks": member is not None and access.lacks_second_factor(session, user, member.tenant),
        "has_app": second_factors.has_totp(user),
        "setup": second_factors.setup_of(user),
        "passkeys": login_passkeys.passkeys_of(user),
        "codes_left": second_factors.codes_left(user),
        "logins": logins.logins_of(user),
        "login_here": session.get(access.LOGIN, ""),
        "fresh_codes": more.get("codes"),
        "said": more.get("said", ""),
    }
    if member is None:
        return render(
            request, "console/account.html", shown | {"frame": "console/lone.html", "alone": True}, status=status
        )
    return page(request, "console/account.html", at="account", status=status, **shown)


def _in_scope(request: StaffRequest, refusal: SilasError | None = None, **more: Any) -> HttpResponseBase:
    if not hasattr(request, "member"):
        return _shown(request, refusal, **more)
    with tenant_scope(request.member.tenant):
        response: Any = _shown(request, refusal, **more)
        return response.render()  # type: ignore[no-any-return]  # a template's response


def _own(view: View, *, on_page: bool = True) -> View:
    """For members of any company, and for whoever runs the platform and belongs to none. `on_page`: a refusal is told
    on the page, beside its field where it has one; else by whoever called."""

    @wraps(view)
    def told(request: StaffRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except SilasError as refusal:
            if on_page and refusal.code in _FIELDS:
                return _in_scope(request, refusal)
            raise

    staff = staff_view(scoped=False, unfinished=True, on_conflict=_shown if on_page else None)(told)

    @wraps(view)
    def guarded(request: StaffRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_superuser or member_of(request.user, request.session) is not None:
            return staff(request, *args, **kwargs)
        logins.seen(request.session)
        try:
            return told(request, *args, **kwargs)
        except SilasError as refusal:
            request.__dict__["refusal"] = refusal
            return _shown(request, refusal) if refusal.status == 409 else refused(request, refusal)

    return guarded


def _require_own(request: StaffRequest, *, password: bool = True) -> None:
    if request.session.get(access.ONLY_TENANT):
        raise _BY_COMPANY
    if password:
        require_password(request)


@require_safe
@_own
def account(request: StaffRequest) -> HttpResponseBase:
    return _in_scope(request)


@require_POST
@_own
def change_name(request: StaffRequest) -> HttpResponseBase:
    _require_own(request, password=False)
    members.change_name(request.user, request.POST.get("name", ""))
    return redirect("console-account")


@require_POST
@sensitive_post_parameters("password", "new_password")
@_own
def change_password(request: StaffRequest) -> HttpResponseBase:
    """Every other login of the person ends with it."""
    _require_own(request)
    wanted = request.POST.get("new_password", "")
    if problems := password_problems(wanted, request.user):
        raise SilasError("weak_password", " ".join(problems), status=409)
    resets.change_password(request, request.user, wanted)
    return _in_scope(request, said="Your password is changed. You are logged out everywhere else.")


@require_POST
@sensitive_post_parameters("password")
@_own
def begin_app(request: StaffRequest) -> HttpResponseBase:
    _require_own(request)
    second_factors.begin_totp(request.user)
    return redirect("console-account")


@require_POST
@_own
def confirm_app(request: StaffRequest) -> HttpResponseBase:
    """The first factor ends every other login: none of them was shown it."""
    _require_own(request, password=False)
    user, first = request.user, not access.has_second_factor(request.user)
    if wait := throttle.wait_before_code("confirm", user.pk):
        raise SilasError("too_many_attempts", f"Too many attempts. Wait {wait.words}.", status=429)
    codes = second_factors.confirm_totp(user, request.POST.get("code", "")[:20])
    throttle.code_fitted("confirm", user.pk)
    if first:
        logins.end_others(request.session, user)
    return _in_scope(request, codes=codes, said="Your app counts from now on.")


@require_POST
@sensitive_post_parameters("password")
@_own
def remove_app(request: StaffRequest) -> HttpResponseBase:
    _require_own(request)
    second_factors.remove_totp(request.user)
    return redirect("console-account")


@require_POST
@sensitive_post_parameters("password")
@_own
def make_codes(request: StaffRequest) -> HttpResponseBase:
    _require_own(request)
    if not access.has_second_factor(request.user):
        raise SilasError("no_second_factor", "Set up an app or a passkey first.", status=409)
    codes = second_factors.make_recovery_codes(request.user)
    return _in_scope(request, codes=codes, said="The codes that you had before are void.")


@require_POST
@sensitive_post_parameters("password")
@in_json
@partial(_own, on_page=False)
def begin_passkey(request: StaffRequest) -> HttpResponseBase:
    _require_own(request)
    rp_id, origin = place_of(request)
    asked = login_passkeys.begin_registration(request.session, request.user, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": asked})


@require_POST
@in_json
@partial(_own, on_page=False)
def finish_passkey(request: StaffRequest) -> HttpResponseBase:
    """Recovery codes come with a first factor, and are shown this once."""
    _require_own(request, password=False)
    user, first = request.user, not access.has_second_factor(request.user)
    name, credential = request.POST.get("name", ""), request.POST.get("credential", "")
    codes = login_passkeys.finish_registration(request.session, user, name=name, credential=credential)
    if first:
        logins.end_others(request.session, user)
    return JsonResponse({"registered": True, "codes": codes})


@require_POST
@sensitive_post_parameters("password")
@_own
def remove_passkey(request: StaffRequest, passkey_id: UUID) -> HttpResponseBase:
    _require_own(request)
    login_passkeys.remove(passkey_id, user=request.user)
    return redirect("console-account")


@require_POST
@_own
def end_login(request: StaffRequest, login_id: UUID) -> HttpResponseBase:
    _require_own(request, password=False)
    logins.end(login_id, user=request.user)
    return redirect("console-account")


@require_POST
@_own
def end_other_logins(request: StaffRequest) -> HttpResponseBase:
    _require_own(request, password=False)
    logins.end_others(request.session, request.user)
    return redirect("console-account")
