"""Members and roles: the members, open invitations, and what each role may do. For owners."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.tenants import emails, invitations, services
from apps.tenants.addresses import console_origin
from apps.tenants.enums import Capability, Role
from apps.tenants.members import get_member, list_members
from apps.tenants.models import Invitation
from apps.tenants.rules import ROLES_WITH
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


def _render(request: StaffRequest, refusal: SilasError | None = None, *_: object, **more: object) -> HttpResponseBase:
    open_invitations = invitations.list_open()
    sent = emails.latest_by_invitation([invitation.pk for invitation in open_invitations])
    return page(
        request,
        "console/members.html",
        at="members",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        members=list_members(),
        invitations=[
            (invitation, sent.get(invitation.pk), invitation.expires_at <= now()) for invitation in open_invitations
        ],
        roles=list(Role),
        table=[(invitation, [role in ROLES_WITH[invitation] for role in Role]) for invitation in Capability],
        email=request.POST.get("email", "") if refusal else "",
        wanted_role=request.POST.get("role") or Role.AGENT,
        link=more.get("link", ""),
        linked=more.get("linked"),
    )


@require_safe
@staff_view(Capability.MANAGE_MEMBERS)
def members(request: StaffRequest) -> HttpResponseBase:
    return _render(request)


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_render)
def invite(request: StaffRequest) -> HttpResponseBase:
    email = request.POST.get("email", "")[:254].replace("\0", "")
    try:
        invitation = invitations.invite(
            email, role=_role(request), by=request.member.user, actor=request.member.user.actor
        )
    except SilasError as refusal:
        raise SilasError(refusal.code, refusal.message, status=409) from refusal
    return _sent(request, invitation)


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_render)
def invite_again(request: StaffRequest, invitation_id: UUID) -> HttpResponseBase:
    return _sent(request, invitations.resend(invitation_id, actor=request.member.user.actor))


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_render)
def uninvite(request: StaffRequest, invitation_id: UUID) -> HttpResponseBase:
    invitations.revoke(invitation_id, actor=request.member.user.actor)
    return redirect("console-members")


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_render)
def change_role(request: StaffRequest, membership_id: UUID) -> HttpResponseBase:
    services.change_role(get_member(membership_id), _role(request), actor=f"user:{request.member.user.pk}")
    return redirect("console-members")


@require_POST
@staff_view(Capability.MANAGE_MEMBERS, on_conflict=_render)
def remove(request: StaffRequest, membership_id: UUID) -> HttpResponseBase:
    services.remove_member(get_member(membership_id), actor=f"user:{request.member.user.pk}")
    return redirect("console-members")


def _sent(request: StaffRequest, invitation: Invitation) -> HttpResponseBase:
    """Email the invitation; without a mail server, show its link once."""
    link = emails.send_invitation(invitation, origin=console_origin(request))
    return _render(request, link=link, linked=invitation) if link else redirect("console-members")


def _role(request: HttpRequest) -> Role:
    try:
        return Role(request.POST.get("role", ""))
    except ValueError:
        raise SilasError(ErrorCode.UNKNOWN_ROLE) from None
