"""How does staff get in with a password and out, and change between tenants?

A wrong password and an unknown account look the same, also in time taken; too many failures are refused for a while,
which grows, and are told the account's person.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth import authenticate, logout
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlsafe_base64_decode
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.console import throttle
from apps.console.coming_in import next_of, password_was_right
from apps.console.members import StaffRequest, staff_view
from apps.console.proving import place_of
from apps.tenants import emails
from apps.tenants.enums import EmailKind
from apps.tenants.models import User
from apps.tenants.rules import TENANT_IN_SESSION
from apps.tenants.services import set_first_password
from kernel import webauthn
from kernel.errors import NotFound

WRONG = "The e-mail address and password do not match. Nothing was changed; try again."


@never_cache
@ensure_csrf_cookie
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return redirect(next_of(request)) if request.user.is_authenticated else _form(request)
    account, address = _typed(request), request.META.get("REMOTE_ADDR", "")
    if wait := throttle.wait_before(address, account):
        if wait.is_new:
            emails.enqueue(EmailKind.LOCKED, account, origin=place_of(request)[1])
        return _form(request, f"Too many attempts. Wait {wait.words}, then try again.", status=429)
    user = authenticate(request, username=_registered(account), password=request.POST.get("password", ""))
    if not isinstance(user, User):
        return _form(request, WRONG, status=400)
    throttle.succeeded(address, account)
    return password_was_right(request, user, next_of(request))


def _typed(request: HttpRequest) -> str:
    return request.POST.get("username", "")[:254].replace("\0", "").strip()


def _registered(account: str) -> str:
    """The address as it was registered, whatever its case; what was typed when there is none."""
    return User.objects.filter(email__iexact=account).values_list("email", flat=True).first() or account


def _form(request: HttpRequest, problem: str = "", *, status: int = 200) -> HttpResponse:
    shown = {
        "problem": problem,
        "username": request.POST.get("username", ""),
        "next": next_of(request),
        "unanswered": request.GET.get("unanswered", "") if request.method != "POST" else "",
        "sends_letters": emails.can_send(),
        "has_passkeys": webauthn.is_domain_name(place_of(request)[0]),
    }
    return render(request, "console/login.html", shown, status=status)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, who: str, token: str) -> HttpResponseBase:
    """A new member sets a password by a link that works once, and goes in. Every dead link looks the same."""
    user = _invited(who, token)
    if user is None:
        return _welcome(request, None, status=404)
    if request.method != "POST":
        return _welcome(request, user)
    password = request.POST.get("password", "")
    if problems := password_problems(password, user):
        return _welcome(request, user, problems, status=400)
    if not set_first_password(user, password):
        return _welcome(request, None, status=404)
    return password_was_right(request, user, reverse("console"))


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


def password_problems(password: str, user: User | None) -> list[str]:
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
