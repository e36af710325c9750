"""By which steps does somebody come in? The one way into a login session, whatever was shown first.

A password alone leads to the second factor, if the person has one; until that holds nobody is logged in, and the
session remembers only whose turn it is, for a few minutes. Each step begins a session with a new key.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme

from apps.audit.enums import AuditEvent
from apps.tenants import logins
from apps.tenants.access import METHOD, ONLY_TENANT, has_second_factor
from apps.tenants.enums import LoginMethod
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import User
from apps.tenants.queries import memberships_of

PENDING_SECONDS = 600
_PENDING = "login_pending"


def next_of(request: HttpRequest) -> str:
    """Where the person wanted to go, if that is a page of ours; else the console."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    return wanted if is_own_page(request, wanted) else reverse("console")


def is_own_page(request: HttpRequest, address: str) -> bool:
    return url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())


def password_was_right(request: HttpRequest, user: User, then: str) -> HttpResponse:
    """On to the second factor, or in."""
    if not has_second_factor(user):
        come_in(request, user, method=LoginMethod.PASSWORD)
        return redirect(then)
    _leave(request)
    request.session[_PENDING] = {
        "user": str(user.pk),
        "password": user.get_session_auth_hash(),
        "next": then,
        "until": time.time() + PENDING_SECONDS,
    }
    return redirect("console-second")


def whose_turn(request: HttpRequest) -> tuple[User, str] | None:
    """Who has shown their password a moment ago and has yet to show the second factor, and where they go then."""
    pending: dict[str, Any] = request.session.get(_PENDING, {})
    if not pending or pending["until"] < time.time():
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), pending["password"]):
        return None
    return user, pending["next"]


def come_in(request: HttpRequest, user: User, *, method: LoginMethod, only_tenant: str = "") -> None:
    """Log the person in, and write it down in their companies. `only_tenant`: all that this login opens."""
    _leave(request)
    request.session[METHOD] = method.value
    if only_tenant:
        request.session[ONLY_TENANT] = only_tenant
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    for one in memberships_of(user):
        if str(one.tenant_id) == only_tenant or not only_tenant:
            data = {"role": str(one.role), "method": method.value}
            record_in_all_tenants(user, AuditEvent.STAFF_LOGGED_IN, data=data, of=[one])


def _leave(request: HttpRequest) -> None:
    """Whatever this session was before, it is not that any more."""
    logins.forget(request.session)
    request.session.flush()
