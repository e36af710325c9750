"""The member behind a console request, and `staff_view`, the decorator of every console page except the login.

A person may belong to several tenants; the login session remembers which one is open, and every request checks that
against the memberships. A refusal is rendered as a page or a fragment with its reason and status.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils import timezone

from apps.tenants import access, logins
from apps.tenants.enums import Capability, Role
from apps.tenants.models import Membership, Tenant, User
from apps.tenants.rules import TENANT_IN_SESSION, forbidden_role, roles_with
from kernel.errors import SilasError
from kernel.tenancy import COMPANY_CLOSED, tenant_scope
from kernel.timezones import get_timezone

DECIDING_ROLES = roles_with(Capability.DECIDE)
ANSWERING_ROLES = roles_with(Capability.ANSWER)
View = Callable[..., HttpResponseBase]


@dataclass(frozen=True)
class Member:
    """The logged-in person in the tenant that is open."""

    user: User
    tenant: Tenant
    role: Role
    others: tuple[Tenant, ...]

    @property
    def may_decide(self) -> bool:
        return self.role in DECIDING_ROLES

    @property
    def may_answer(self) -> bool:
        return self.role in ANSWERING_ROLES

    @property
    def may_administer(self) -> bool:
        return self.role in roles_with(Capability.ADMINISTER)


class StaffRequest(HttpRequest):
    """A request that has passed `staff_view`."""

    member: Member
    user: User
    htmx: Any


def member_of(user: User, session: SessionBase) -> Member | None:
    """Return the user as a member of the open tenant, or of the oldest one that this session may open.

    None for a user without a membership.
    """
    memberships, tenant_id = access.memberships_in(session, user), session.get(TENANT_IN_SESSION, "")
    chosen = next((row for row in memberships if str(row.tenant_id) == tenant_id), None) or next(
        iter(memberships), None
    )
    return _as_member(user, chosen, memberships) if chosen else None


def _as_member(user: User, chosen: Membership, memberships: list[Membership]) -> Member:
    others = tuple(row.tenant for row in memberships if row is not chosen)
    return Member(user=user, tenant=chosen.tenant, role=Role(chosen.role), others=others)


def group_of(tenant_id: UUID) -> str:
    """The channel-layer group of every console that has this tenant open."""
    return f"console.{tenant_id.hex}"


def group_of_member(tenant_id: UUID, user_id: UUID) -> str:
    """The channel-layer group of every console that this member has open there."""
    return f"member.{tenant_id.hex}.{user_id.hex}"


def staff_view(
    *allowed: Role | Capability, scoped: bool = True, on_conflict: View | None = None, unfinished: bool = False
) -> Callable[[View], View]:
    """Allow members with one of the roles or capabilities (everyone, when none is named), inside their tenant's scope.

    The page is rendered inside the scope, and an exception rolls back what the view wrote. `scoped=False` is for views
    that open scopes of their own. `on_conflict` answers a refusal with status 409, in a scope of its own, with the
    refusal before the view's other arguments. `unfinished` also allows members who have yet to set up the second factor
    that their tenant requires; all other pages redirect them there.
    """
    roles = roles_with(*allowed)

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: StaffRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_login(request)
            member = member_of(request.user, request.session)
            if member is None:
                return render(request, "console/no_tenant.html", status=403)
            if not unfinished and access.lacks_second_factor(request.session, request.user, member.tenant):
                return _redirect(request, reverse("console-account"))
            request.member = member
            logins.seen(request.session)
            with timezone.override(get_timezone(member.tenant.timezone)):
                try:
                    _require_role(member, roles)
                    return _in_scope(view, request, *args, **kwargs) if scoped else view(request, *args, **kwargs)
                except SilasError as refusal:
                    if on_conflict is not None and refusal.status == 409:
                        return _in_scope(on_conflict, request, refusal, *args, **kwargs)
                    request.__dict__["refusal"] = refusal
                    return refused(request, refusal)

        return guarded

    return decorate


def _in_scope(view: View, request: StaffRequest, *args: object, **kwargs: object) -> HttpResponseBase:
    with tenant_scope(request.member.tenant):
        response = view(request, *args, **kwargs)
        if isinstance(response, SimpleTemplateResponse):
            response.render()
        return response


def _require_role(member: Member, roles: tuple[Role, ...]) -> None:
    if roles and member.role not in roles:
        raise forbidden_role(roles)


def _to_login(request: StaffRequest) -> HttpResponse:
    """Redirect to the login and back; the login page mentions a form that was not saved."""
    if not request.htmx and not page_of_form(request):
        return redirect_to_login(request.get_full_path(), reverse("console-login"))
    here = request.htmx.current_url_abs_path if request.htmx else page_of_form(request)
    unanswered = {"unanswered": "1"} if request.method == "POST" else {}
    query = urlencode({"next": here or reverse("console"), **unanswered}, safe="/")
    address = f"{reverse('console-login')}?{query}"
    return HttpResponse(status=401, headers={"HX-Redirect": address}) if request.htmx else redirect(address)


def page_of_form(request: StaffRequest) -> str:
    """Return our own page from which a form was sent without scripts; the form's own address shows no page."""
    came_from = urlsplit(request.META.get("HTTP_REFERER", ""))
    is_own = came_from.netloc == request.get_host() and came_from.path.startswith(reverse("console"))
    return came_from.path if request.method == "POST" and is_own else ""


def _redirect(request: StaffRequest, address: str) -> HttpResponse:
    return HttpResponse(status=403, headers={"HX-Redirect": address}) if request.htmx else redirect(address)


def refused(request: Any, refusal: SilasError) -> HttpResponse:
    """Render the refusal as a page, or for HTMX as the notice above the page."""
    if not request.htmx:
        name = "closed" if refusal.code in COMPANY_CLOSED else "refused"
        return render(request, f"console/{name}.html", {"refusal": refusal}, status=refusal.status)
    response = render(request, "console/_notice.html", {"refusal": refusal}, status=refusal.status)
    response["HX-Retarget"], response["HX-Reswap"] = "#notice", "innerHTML"
    response["HX-Reselect"] = "p"
    response["X-Console-Refusal"] = refusal.code
    return response
