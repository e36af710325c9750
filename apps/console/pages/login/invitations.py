"""Accept an invitation, with a new account or with the one logged in. All invalid links give the same answer."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.console.pages.login.flow import continue_after_password
from apps.console.pages.login.views import password_problems
from apps.tenants import invitations
from apps.tenants.access import ONLY_TENANT
from apps.tenants.models import Invitation
from apps.tenants.rules import TENANT_IN_SESSION
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    row = invitations.find_by_token(token)
    if row is None:
        return render(request, "console/invitation.html", status=404)
    if request.method != "POST":
        return _page(request, row)
    try:
        return _join(request, row) if request.user.is_authenticated else _begin(request, row)
    except SilasError as refusal:
        return _page(request, row, [refusal.message], status=refusal.status)


def _join(request: HttpRequest, row: Invitation) -> HttpResponseBase:
    if request.session.get(ONLY_TENANT):
        raise SilasError(ErrorCode.PROVIDER_LOGIN, _("Log in with your own password first."), status=409)
    assert request.user.is_authenticated
    with tenant_scope(row.tenant_id):
        invitations.accept(row, user=request.user)
    request.session[TENANT_IN_SESSION] = str(row.tenant_id)
    return redirect("console")


def _begin(request: HttpRequest, row: Invitation) -> HttpResponseBase:
    password, name = request.POST.get("password", ""), " ".join(request.POST.get("name", "").split())[:120]
    if not invitations.has_account(row) and (problems := password_problems(password, None)):
        return _page(request, row, problems, status=400)
    with tenant_scope(row.tenant_id):
        new = invitations.accept(row, name=name.replace("\0", ""), password=password)
    return continue_after_password(request, new.membership.user, reverse("console"))


def _page(
    request: HttpRequest, row: Invitation, problems: list[str] | None = None, *, status: int = 200
) -> HttpResponseBase:
    context = {
        "invitation": row,
        "problems": problems or [],
        "has_account": invitations.has_account(row),
        "is_theirs": request.user.is_authenticated and request.user.email.lower() == row.email,
        "login": f"{reverse('console-login')}?{urlencode({'next': request.path})}",
        "name": request.POST.get("name", ""),
    }
    return render(request, "console/invitation.html", context, status=status)
