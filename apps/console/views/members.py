"""Members and roles: who belongs here, who was invited, and what each role may. For owners."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.proving import place_of
from apps.console.views.pages import page
from apps.tenants import emails, invitations, services
from apps.tenants.enums import Capability, EmailKind, Role
from apps.tenants.members import get_member, list_members
from apps.tenants.models import Invitation
from apps.tenants.rules import ROLES_WITH
from kernel.clock import now
from kernel.errors import SilasError


def _shown(request: StaffRequest, refusal: SilasError | None = None, *_: Any, **more: Any) -> HttpResponseBase:
    asked = invitations.list_open()
    sent = emails.latest_by_invitation([one.pk for one in asked])
    return page(
        request,
        "console/members.html",
        at="members",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        members=list_members(),
        invitations=[(one, sent.get(one.pk), one.expires_at <= now()) for one in asked],
        roles=list(Role),
        table=[(one, [role in ROLES_WITH[one] for role in Role]) for one in Capability],
        email=request.POST.get("email", "") if refusal else "",
        wanted_role=request.POST.get("role") or Role.AGENT,
        link=more.get("link", ""),
        linked=more.get("linked"),
    )


@require_safe
@staff_view(Capability.MANAGE_MEMBERS)
def members(request: StaffRequest) -> HttpResponseBase:
    return _shown(request)


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_shown)
def invite(request: StaffRequest) -> HttpResponseBase:
    email = request.POST.get("email", "")[:254].replace("\0", "")
    try:
        made = invitations.invite(email, role=_role(request), by=request.member.user)
    except SilasError as refusal:
        raise SilasError(refusal.code, refusal.message, status=409) from refusal
    return _sent(request, made)


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_shown)
def invite_again(request: StaffRequest, invitation_id: UUID) -> HttpResponseBase:
    return _sent(request, invitations.resend(invitation_id, by=request.member.user))


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_shown)
def uninvite(request: StaffRequest, invitation_id: UUID) -> HttpResponseBase:
    invitations.revoke(invitation_id, by=request.member.user)
    return redirect("console-members")


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_shown)
def change_role(request: StaffRequest, membership_id: UUID) -> HttpResponseBase:
    services.change_role(get_member(membership_id), _role(request), actor=f"user:{request.member.user.pk}")
    return redirect("console-members")


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_shown)
def remove(request: StaffRequest, membership_id: UUID) -> HttpResponseBase:
    services.remove_member(get_member(membership_id), actor=f"user:{request.member.user.pk}")
    return redirect("console-members")


def _sent(request: StaffRequest, made: Invitation) -> HttpResponseBase:
    """By letter; where none can be sent, the link is shown this once, to be handed over."""
    origin = place_of(request)[1]
    if emails.can_send():
        company_id = request.member.tenant.pk
        emails.enqueue(EmailKind.INVITATION, made.email, origin=origin, company_id=company_id, invitation_id=made.pk)
        return redirect("console-members")
    link = invitations.new_link(made.pk)
    return _shown(request, link=origin + link.path if link else "", linked=made)


def _role(request: HttpRequest) -> Role:
    try:
        return Role(request.POST.get("role", ""))
    except ValueError:
        raise SilasError("unknown_role", "Choose a role.", status=409) from None
