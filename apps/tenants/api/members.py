"""REST API of members and invitations, for owners and credentials with the scopes `members:*`.

A credential with scopes neither makes nor unmakes an owner, because an owner can do more than it. How members log in
is set in the console alone.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants import emails, invitations, members, services
from apps.tenants.addresses import console_origin
from apps.tenants.api_auth import (
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    Caller,
    OwnersView,
    PageRequest,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope, Role
from apps.tenants.models import Invitation, Membership
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope


class MemberAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Of the membership")
    user_id = serializers.UUIDField(help_text="As in `user:…` of the audit log")
    name = serializers.CharField(source="user.display_name")
    email = serializers.EmailField(source="user.email")
    role = serializers.ChoiceField(choices=Role.choices)
    has_second_factor = serializers.BooleanField(source="has_factor")
    last_seen = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class MembersAnswer(serializers.Serializer[Any]):
    members = MemberAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class RoleRequest(RequestSerializer):
    role = serializers.ChoiceField(choices=Role.choices)


class InvitationRequest(RoleRequest):
    email = serializers.EmailField()


class InvitationAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices)
    invited_by = serializers.UUIDField(source="invited_by_id", allow_null=True, help_text="A user; null for a program")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="Afterwards it can be sent again")


class InvitationsAnswer(serializers.Serializer[Any]):
    invitations = InvitationAnswer(many=True)


class SentInvitation(InvitationAnswer):
    link = serializers.CharField(help_text="Only where no mail server is configured, and only here; else empty")


_LAST_OWNER = {409: OpenApiResponse(description="`last_owner`: the company needs one")}


class _MembersView(OwnersView):
    reading, writing = KeyScope.MEMBERS_READ, KeyScope.MEMBERS_WRITE


class Members(_MembersView):
    @extend_schema(
        operation_id="members_list",
        tags=["members"],
        parameters=[PageRequest],
        responses={
            200: MembersAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            **OWNERS_REFUSALS,
        },
    )
    def get(self, request: Request) -> Response:
        """List members, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = members.page_of_members(**values)
            return uncached(MembersAnswer({"members": rows, "next": following}).data)


class OneMember(_MembersView):
    @extend_schema(operation_id="members_get", tags=["members"], responses={200: MemberAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request, member_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _shown(members.get_member(member_id))

    @extend_schema(
        operation_id="members_change",
        tags=["members"],
        request=RoleRequest,
        parameters=[IF_MATCH],
        responses={
            200: MemberAnswer,
            **RESOURCE_REFUSALS,
            **_LAST_OWNER,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, member_id: UUID) -> Response:
        """Change a member's role."""
        role = Role(validated(RoleRequest, request.data)["role"])
        with tenant_scope(self.caller.tenant_id):
            row = members.get_member(member_id)
            require_unchanged(request, row.role)
            _require_right_over(self.caller, row.role, role)
            services.change_role(row, role, actor=self.caller.actor)
            return _shown(members.get_member(member_id))

    @extend_schema(
        operation_id="members_remove", tags=["members"], responses={204: None, **RESOURCE_REFUSALS, **_LAST_OWNER}
    )
    def delete(self, request: Request, member_id: UUID) -> Response:
        """Remove a member. The account and the person's decisions stay."""
        with tenant_scope(self.caller.tenant_id):
            row = members.get_member(member_id)
            _require_right_over(self.caller, row.role)
            services.remove_member(row, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Invitations(_MembersView):
    answers_secret = True

    @extend_schema(
        operation_id="invitations_list", tags=["members"], responses={200: InvitationsAnswer, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List open invitations, with those that have expired."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(InvitationsAnswer({"invitations": invitations.list_open()}).data)

    @extend_schema(
        operation_id="invitations_create",
        tags=["members"],
        request=InvitationRequest,
        responses={
            201: SentInvitation,
            400: OpenApiResponse(description="`invalid`; `invalid_email`"),
            409: OpenApiResponse(description="`member_exists`"),
            **OWNERS_REFUSALS,
        },
    )
    def post(self, request: Request) -> Response:
        """Invite someone by email. An open invitation for the same address ends."""
        sent = validated(InvitationRequest, request.data)
        role, by = Role(sent["role"]), self.caller
        _require_right_over(by, role)
        with tenant_scope(by.tenant_id):
            row = invitations.invite(sent["email"], role=role, by=by.user, actor=by.actor)
            return _sent(request, row, status.HTTP_201_CREATED)


class OneInvitation(_MembersView):
    @extend_schema(operation_id="invitations_revoke", tags=["members"], responses={204: None, **RESOURCE_REFUSALS})
    def delete(self, request: Request, invitation_id: UUID) -> Response:
        """Revoke an open invitation; its link opens nothing any more."""
        with tenant_scope(self.caller.tenant_id):
            _require_right_over(self.caller, invitations.find_open(invitation_id).role)
            invitations.revoke(invitation_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ResendInvitation(_MembersView):
    answers_secret = True

    @extend_schema(
        operation_id="invitations_resend",
        tags=["members"],
        request=None,
        responses={200: SentInvitation, **RESOURCE_REFUSALS},
    )
    def post(self, request: Request, invitation_id: UUID) -> Response:
        """Send an open invitation again, for seven days; the link before ends."""
        with tenant_scope(self.caller.tenant_id):
            _require_right_over(self.caller, invitations.find_open(invitation_id).role)
            row = invitations.resend(invitation_id, actor=self.caller.actor)
            return _sent(request, row, status.HTTP_200_OK)


def _shown(row: Membership) -> Response:
    """The member, with the ETag of the role, which is all that can be changed."""
    (listed,) = members.with_logins([row])
    return with_etag(MemberAnswer(listed).data, of=row.role)


def _sent(request: Request, row: Invitation, code: int) -> Response:
    link = emails.send_invitation(row, origin=console_origin(request._request))
    return uncached({**InvitationAnswer(row).data, "link": link}, code)


def _require_right_over(caller: Caller, *roles: str) -> None:
    """Raises 403 `forbidden_scope` for a credential with scopes where a role decides cards: it would make an approver
    of its holder."""
    if caller.is_limited and {Role.OWNER, Role.APPROVER} & set(roles):
        message = gettext("Only a key without scopes, or an owner, can add, change or remove owners and approvers.")
        raise SilasError(ErrorCode.FORBIDDEN_SCOPE, message, extra={"scope": ""})
