"""My account: name, password, second factors and active sessions.

Changes that could keep an intruder logged in need the password again. Members who use their company's login change
nothing here, because that login is valid for their own company only. Members without the second factor that their
tenant requires are redirected here. Superusers without a company manage their login here too.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial, wraps
from typing import Any
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import THEME_COOKIE, THEMES, page
from apps.console.members import Member, StaffRequest, View, member_of, page_of_form, refused, staff_view
from apps.console.pages.account.approval_keys import in_json
from apps.console.pages.login import ratelimit
from apps.console.pages.login.reauthentication import passkey_origin, require_password
from apps.console.pages.login.views import password_problems
from apps.tenants import access, login_passkeys, logins, members, resets, second_factors
from kernel import webauthn
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import MEMBER_LANGUAGES
from kernel.tenancy import tenant_scope

_BY_COMPANY = SilasError(
    ErrorCode.PROVIDER_LOGIN,
    gettext_lazy("You signed in with your company's login, which manages your password and factors."),
)


# Refusals that are shown at a field instead of above the page.
_FIELDS = {ErrorCode.WRONG_PASSWORD: "password", ErrorCode.WEAK_PASSWORD: "new_password", ErrorCode.WRONG_CODE: "code"}


def _render(
    request: StaffRequest, refusal: SilasError | None = None, *_args: object, **more: object
) -> HttpResponseBase:
    user, session, (here, _origin) = request.user, request.session, passkey_origin(request)
    member: Member | None = getattr(request, "member", None)
    status = refusal.status if refusal else 200
    context = {
        "person": user,
        "languages": MEMBER_LANGUAGES,
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
        "message": more.get("message", ""),
    }
    if member is None:
        return render(
            request, "console/account.html", context | {"frame": "console/lone.html", "alone": True}, status=status
        )
    return page(request, "console/account.html", at="account", status=status, **context)


def _in_scope(request: StaffRequest, refusal: SilasError | None = None, **more: object) -> HttpResponseBase:
    if not hasattr(request, "member"):
        return _render(request, refusal, **more)
    with tenant_scope(request.member.tenant):
        response = _render(request, refusal, **more)
        return response.render() if isinstance(response, TemplateResponse) else response


def _own(view: View, *, on_page: bool = True) -> View:
    """Allow members of any company, and superusers without one.

    `on_page` shows a refusal on the page, at its field if it has one; else the caller handles it.
    """

    @wraps(view)
    def answered(request: StaffRequest, *args: Any, **kwargs: object) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except SilasError as refusal:
            if on_page and refusal.code in _FIELDS:
                return _in_scope(request, refusal)
            raise

    staff = staff_view(scoped=False, unfinished=True, on_conflict=_render if on_page else None)(answered)

    @wraps(view)
    def guarded(request: StaffRequest, *args: Any, **kwargs: object) -> HttpResponseBase:
        if not request.user.is_superuser or member_of(request.user, request.session) is not None:
            return staff(request, *args, **kwargs)
        logins.seen(request.session)
        try:
            return answered(request, *args, **kwargs)
        except SilasError as refusal:
            request.__dict__["refusal"] = refusal
            return _render(request, refusal) if refusal.status == 409 else refused(request, refusal)

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
@_own
def change_language(request: StaffRequest) -> HttpResponseBase:
    members.change_language(request.user, request.POST.get("language", ""))
    return redirect(("back" in request.POST and page_of_form(request)) or "console-account")


@require_POST
@staff_view(scoped=False, unfinished=True)
def change_theme(request: StaffRequest) -> HttpResponseBase:
    """Show the console light, dark or as the system in this browser."""
    theme = request.POST.get("theme", "")
    response = redirect(page_of_form(request) or "console-account")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=timedelta(days=365), secure=request.is_secure(), httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(THEME_COOKIE)
    return response


@require_POST
@sensitive_post_parameters("password", "new_password")
@_own
def change_password(request: StaffRequest) -> HttpResponseBase:
    """Change the password and end every other login of the person."""
    _require_own(request)
    new_password = request.POST.get("new_password", "")
    if problems := password_problems(new_password, request.user):
        raise SilasError(ErrorCode.WEAK_PASSWORD, " ".join(problems))
    resets.change_password(request, request.user, new_password)
    return _in_scope(request, message=_("Password changed. You were logged out everywhere else."))


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
    """Turn on the app. A first factor ends every other login, because those were never asked for it."""
    _require_own(request, password=False)
    user, first = request.user, not access.has_second_factor(request.user)
    if wait := ratelimit.wait_before_code("confirm", user.pk):
        raise SilasError(ErrorCode.TOO_MANY_ATTEMPTS, _("Too many attempts. Wait %(time)s.") % {"time": wait.words})
    codes = second_factors.confirm_totp(user, request.POST.get("code", "")[:20])
    ratelimit.code_was_right("confirm", user.pk)
    if first:
        logins.end_others(request.session, user)
    return _in_scope(request, codes=codes, message=_("Authenticator app is on."))


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
        raise SilasError(ErrorCode.NO_SECOND_FACTOR)
    codes = second_factors.make_recovery_codes(request.user)
    return _in_scope(request, codes=codes, message=_("Your previous recovery codes no longer work."))


@require_POST
@sensitive_post_parameters("password")
@in_json
@partial(_own, on_page=False)
def begin_passkey(request: StaffRequest) -> HttpResponseBase:
    _require_own(request)
    rp_id, origin = passkey_origin(request)
    options = login_passkeys.begin_registration(request.session, request.user, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})


@require_POST
@in_json
@partial(_own, on_page=False)
def finish_passkey(request: StaffRequest) -> HttpResponseBase:
    """Add the passkey. Recovery codes come with a first factor and are shown only once."""
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
