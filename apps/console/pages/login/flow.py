"""The steps of a login: every way of logging in ends here.

A right password leads to the second factor, if the person has one. Until that is right, the session only remembers the
pending person, for a few minutes. Each step starts a session with a new key.
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


def next_address(request: HttpRequest) -> str:
    """Return the `next` address if it is one of our own pages, else the console."""
    address = request.POST.get("next") or request.GET.get("next") or ""
    return address if is_own_page(request, address) else reverse("console")


def is_own_page(request: HttpRequest, address: str) -> bool:
    return url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())


def continue_after_password(request: HttpRequest, user: User, then: str) -> HttpResponse:
    """Go to the second factor, or log in if the person has none."""
    if not has_second_factor(user):
        log_in_user(request, user, method=LoginMethod.PASSWORD)
        return redirect(then)
    _end_session(request)
    request.session[_PENDING] = {
        "user": str(user.pk),
        "password": user.get_session_auth_hash(),
        "next": then,
        "until": time.time() + PENDING_SECONDS,
    }
    return redirect("console-second")


def pending_login(request: HttpRequest) -> tuple[User, str] | None:
    """Return the person who has yet to give the second factor, and their next address; None after ten minutes."""
    pending: dict[str, Any] = request.session.get(_PENDING, {})
    if not pending or pending["until"] < time.time():
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), pending["password"]):
        return None
    return user, pending["next"]


def log_in_user(request: HttpRequest, user: User, *, method: LoginMethod, only_tenant: str = "") -> None:
    """Log the person in and record it in their companies; `only_tenant` limits the login to one company."""
    _end_session(request)
    request.session[METHOD] = method.value
    if only_tenant:
        request.session[ONLY_TENANT] = only_tenant
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    for membership in memberships_of(user):
        if str(membership.tenant_id) == only_tenant or not only_tenant:
            data = {"role": str(membership.role), "method": method.value}
            record_in_all_tenants(user, AuditEvent.STAFF_LOGGED_IN, data=data, of=[membership])


def _end_session(request: HttpRequest) -> None:
    logins.forget(request.session)
    request.session.flush()
