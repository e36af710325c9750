"""How does staff get in and out, and change between tenants?

A wrong password and an unknown account look the same, also in time taken; too many failures are refused for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib.auth import authenticate, login, logout
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlsafe_base64_decode
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.console import throttle
from apps.console.members import StaffRequest, staff_view
from apps.tenants.models import User
from apps.tenants.queries import memberships_of
from apps.tenants.rules import TENANT_IN_SESSION
from apps.tenants.services import set_first_password
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

WRONG = "The e-mail address and password do not match. Nothing was changed; try again."
TOO_MANY = "Too many attempts. Wait a quarter of an hour, then try again."


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return redirect(_next(request)) if request.user.is_authenticated else _form(request)
    account, address = _typed(request), request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(address, account):
        return _form(request, TOO_MANY, status=429)
    user = authenticate(request, username=_registered(account), password=request.POST.get("password", ""))
    if user is None:
        return _form(request, WRONG, status=400)
    throttle.succeeded(address, account)
    login(request, user)
    _write_down(user)
    return redirect(_next(request))


def _typed(request: HttpRequest) -> str:
    return request.POST.get("username", "")[:254].replace("\0", "").strip()


def _registered(account: str) -> str:
    """The address as it was registered, whatever its case; what was typed when there is none."""
    return User.objects.filter(email__iexact=account).values_list("email", flat=True).first() or account


def _write_down(user: Any) -> None:
    for membership in memberships_of(user):
        with tenant_scope(membership.tenant_id):
            record(AuditEvent.STAFF_LOGGED_IN, actor=f"user:{user.pk}", data={"role": membership.role})


def _form(request: HttpRequest, problem: str = "", *, status: int = 200) -> HttpResponse:
    shown = {"problem": problem, "username": request.POST.get("username", ""), "next": _next(request)}
    shown["unanswered"] = request.GET.get("unanswered", "") if request.method != "POST" else ""
    return render(request, "console/login.html", shown, status=status)


def _next(request: HttpRequest) -> str:
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if safe else reverse("console")


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, who: str, token: str) -> HttpResponseBase:
    """A new member sets a password by a link that works once, and is logged in. Every dead link looks the same."""
    user = _invited(who, token)
    if user is None:
        return _welcome(request, None, status=404)
    if request.method != "POST":
        return _welcome(request, user)
    password = request.POST.get("password", "")
    if problems := _problems(password, user):
        return _welcome(request, user, problems, status=400)
    if not set_first_password(user, password):
        return _welcome(request, None, status=404)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    _write_down(user)
    return redirect("console")


def _welcome(
    request: HttpRequest, user: User | None, problems: Sequence[str] = (), *, status: int = 200
) -> HttpResponse:
    return render(request, "console/welcome.html", {"user": user, "problems": problems}, status=status)


def _invited(who: str, token: str) -> User | None:
    try:
        user = User.objects.filter(pk=UUID(urlsafe_base64_decode(who).decode()), is_active=True).first()
    except ValueError:
        return None
    return user if user and default_token_generator.check_token(user, token) else None


def _problems(password: str, user: User) -> list[str]:
    try:
        validate_password(password, user)
    except ValidationError as error:
        return error.messages
    return []


@require_POST
def log_out(request: HttpRequest) -> HttpResponseBase:
    logout(request)
    return redirect("console-login")


@require_POST
@staff_view()
def change_tenant(request: StaffRequest) -> HttpResponseBase:
    """Open another of the person's own tenants; a foreign one does not exist for them."""
    wanted = request.POST.get("tenant", "")
    chosen = next((one for one in (*request.member.others, request.member.tenant) if one.slug == wanted), None)
    if chosen is None:
        raise NotFound("organisation")
    request.session[TENANT_IN_SESSION] = str(chosen.pk)
    return redirect("console")
