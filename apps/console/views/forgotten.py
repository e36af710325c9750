"""How does somebody who forgot their password get in again? A letter with a link that works once.

The answer is the same, in the same time, whether there is such an account or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.console import throttle
from apps.console.coming_in import password_was_right
from apps.console.proving import place_of
from apps.console.views.login import password_problems
from apps.tenants import emails, resets
from apps.tenants.enums import EmailKind
from apps.tenants.models import User


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def forgotten(request: HttpRequest) -> HttpResponseBase:
    shown = {"sends_letters": emails.can_send()}
    if request.method != "POST":
        return render(request, "console/forgotten.html", shown)
    account = request.POST.get("username", "")[:254].replace("\0", "").strip()
    if not throttle.may_ask(request.META.get("REMOTE_ADDR", ""), account):
        problem = "Too many letters were asked for. Wait an hour, then try again."
        return render(request, "console/forgotten.html", {**shown, "problem": problem}, status=429)
    if account:
        emails.enqueue(EmailKind.RESET, account, origin=place_of(request)[1])
    return render(request, "console/forgotten.html", {**shown, "asked": True})


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def reset(request: HttpRequest, who: str, token: str) -> HttpResponseBase:
    """Every dead link looks the same."""
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
    return password_was_right(request, user, reverse("console"))


def _reset(request: HttpRequest, user: User | None, problems: Sequence[str] = (), *, status: int = 200) -> HttpResponse:
    return render(request, "console/reset.html", {"user": user, "problems": problems}, status=status)
