"""Log in with a password, log out, accept an invitation link, and switch between tenants.

A wrong password and an unknown account give the same answer in the same time. Too many failures block further attempts
for a growing time, and the account's person gets an email.
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.members import StaffRequest, staff_view
from apps.console.pages.login import ratelimit
from apps.console.pages.login.flow import continue_after_password, next_address
from apps.console.pages.login.reauthentication import passkey_origin
from apps.tenants import emails
from apps.tenants.enums import EmailKind
from apps.tenants.models import User
from apps.tenants.rules import TENANT_IN_SESSION
from apps.tenants.services import set_first_password
from kernel import webauthn
from kernel.errors import NotFound
from kernel.ratelimit.addresses import address_of

WRONG = gettext_lazy("Wrong email address or password. Try again.")


@never_cache
@ensure_csrf_cookie
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def log_in(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return redirect(next_address(request)) if request.user.is_authenticated else _form(request)
    account = request.POST.get("username", "")[:254].replace("\0", "").strip()
    address = address_of(request)
    if wait := ratelimit.wait_before(address, account):
        if wait.is_new:
            emails.enqueue(EmailKind.LOCKED, account, origin=passkey_origin(request)[1])
        return _form(request, _("Too many attempts. Wait %(time)s, then try again.") % {"time": wait.words}, status=429)
    user = authenticate(request, username=_registered(account), password=request.POST.get("password", ""))
    if not isinstance(user, User):
        return _form(request, str(WRONG), status=400)
    ratelimit.password_was_right(address, account)
    return continue_after_password(request, user, next_address(request))


def _registered(account: str) -> str:
    """Return the email address as registered, ignoring case; the typed one if there is no account."""
    return User.objects.filter(email__iexact=account).values_list("email", flat=True).first() or account


def _form(request: HttpRequest, problem: str = "", *, status: int = 200) -> HttpResponse:
    context = {
        "problem": problem,
        "username": request.POST.get("username", ""),
        "next": next_address(request),
        "unanswered": request.GET.get("unanswered", "") if request.method != "POST" else "",
        "sends_email": emails.can_send(),
        "has_passkeys": webauthn.is_domain_name(passkey_origin(request)[0]),
    }
    return render(request, "console/login.html", context, status=status)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, who: str, token: str) -> HttpResponseBase:
    """Let a new member set a password with a one-time link and log in. All invalid links give the same answer."""
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
    return continue_after_password(request, user, reverse("console"))


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
@staff_view(scoped=False)
def change_tenant(request: StaffRequest) -> HttpResponseBase:
    """Open another of the person's own tenants; any other answers 404. Works from a closed one too."""
    slug, tenants = request.POST.get("tenant", ""), (*request.member.others, request.member.tenant)
    chosen = next((tenant for tenant in tenants if tenant.slug == slug), None)
    if chosen is None:
        raise NotFound()
    request.session[TENANT_IN_SESSION] = str(chosen.pk)
    return redirect("console")
