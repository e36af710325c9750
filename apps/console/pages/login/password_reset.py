"""Reset a forgotten password with an emailed one-time link.

The answer is the same, in the same time, whether the account exists or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.console.pages.login import ratelimit
from apps.console.pages.login.flow import continue_after_password
from apps.console.pages.login.reauthentication import passkey_origin
from apps.console.pages.login.views import password_problems
from apps.tenants import emails, resets
from apps.tenants.enums import EmailKind
from apps.tenants.models import User
from kernel.ratelimit.addresses import address_of


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def forgotten(request: HttpRequest) -> HttpResponseBase:
    context = {"sends_email": emails.can_send()}
    if request.method != "POST":
        return render(request, "console/forgotten.html", context)
    account = request.POST.get("username", "")[:254].replace("\0", "").strip()
    if not ratelimit.may_request_email(address_of(request), account):
        problem = _("Too many password emails requested. Wait an hour, then try again.")
        return render(request, "console/forgotten.html", {**context, "problem": problem}, status=429)
    if account:
        emails.enqueue(EmailKind.RESET, account, origin=passkey_origin(request)[1])
    return render(request, "console/forgotten.html", {**context, "asked": True})


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def reset(request: HttpRequest, who: str, token: str) -> HttpResponseBase:
    """Set a new password with a link. All invalid links give the same answer."""
    user = resets.person_of(who, token)
    if user is None:
        return _reset(request, None, status=404)
    if request.method != "POST":
        return _reset(request, user)
    password = request.POST.get("password", "")
    if problems := password_problems(password, user):
        return _reset(request, user, problems, status=400)
    if not resets.set_new_password(user, password):
        return _reset(request, None, status=404)
    return continue_after_password(request, user, reverse("console"))


def _reset(request: HttpRequest, user: User | None, problems: Sequence[str] = (), *, status: int = 200) -> HttpResponse:
    return render(request, "console/reset.html", {"user": user, "problems": problems}, status=status)
