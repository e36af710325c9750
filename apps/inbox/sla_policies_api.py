"""REST API of SLA policies (contract interfaces, HTTP).

For members in the console's session, and API keys with the scopes `settings:read` and `settings:write`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import sla_policies
from apps.inbox.api import StaffView
from apps.inbox.models import SlaPolicy
from apps.inbox.sla_policies import MAX_MINUTES, MAX_NAME, MAX_POSITION, PolicyFields
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    RESOURCE_REFUSALS,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope

# So many teams and chatbots a policy can name.
MAX_IDS = 100
_SAVE_REFUSALS: dict[int, OpenApiResponse] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `bad_name`, `bad_sla_policy`: a field is wrong"),
    409: OpenApiResponse(description="`name_taken`; `too_many`"),
}


class SlaPolicyAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    position = serializers.IntegerField(help_text="Policies with a smaller number are tried first")
    first_reply = serializers.IntegerField(
        allow_null=True, help_text="Minutes from when a person is wanted or takes over; null for no target"
    )
    next_reply = serializers.IntegerField(
        allow_null=True, help_text="Minutes from the visitor's first message without an answer of the team"
    )
    resolution = serializers.IntegerField(allow_null=True, help_text="Minutes until the conversation is resolved")
    in_opening_hours = serializers.BooleanField(help_text="Only the team's opening hours count")
    teams = serializers.ListField(child=serializers.UUIDField(), help_text="Empty for all conversations")
    deployments = serializers.ListField(child=serializers.UUIDField(), help_text="Empty for all chatbots")


class SlaPoliciesAnswer(serializers.Serializer[object]):
    sla_policies = SlaPolicyAnswer(many=True)


def _minutes() -> serializers.IntegerField:
    return serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=MAX_MINUTES)


def _ids() -> serializers.ListField:
    return serializers.ListField(child=serializers.UUIDField(), required=False, max_length=MAX_IDS)


class SlaPolicyRequest(RequestSerializer):
    name = serializers.CharField(max_length=MAX_NAME)
    position = serializers.IntegerField(required=False, min_value=1, max_value=MAX_POSITION)
    first_reply = _minutes()
    next_reply = _minutes()
    resolution = _minutes()
    in_opening_hours = serializers.BooleanField(required=False, help_text="True unless you say otherwise")
    teams = _ids()
    deployments = _ids()


class SlaPolicyChange(SlaPolicyRequest):
    """What is not named stays."""

    name = serializers.CharField(max_length=MAX_NAME, required=False)


class _PolicyView(StaffView):
    """All members may read; the services refuse changes to those who are not owners."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE


class SlaPolicies(_PolicyView):
    @extend_schema(
        operation_id="sla_policies_list", tags=["sla-policies"], responses={200: SlaPoliciesAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List all SLA policies in the order in which they are tried."""
        with tenant_scope(self.caller.tenant_id):
            policies = [_shown(policy) for policy in sla_policies.sla_policies()]
            return uncached(SlaPoliciesAnswer({"sla_policies": policies}).data)

    @extend_schema(
        operation_id="sla_policies_create",
        tags=["sla-policies"],
        request=SlaPolicyRequest,
        responses={201: SlaPolicyAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Create an SLA policy with at least one target."""
        values = _values(SlaPolicyRequest, request)
        with tenant_scope(self.caller.tenant_id):
            saved = sla_policies.save_policy(self.staff, PolicyFields(**values))
            return with_etag(_answer(saved), status.HTTP_201_CREATED)


class OneSlaPolicy(_PolicyView):
    @extend_schema(
        operation_id="sla_policies_get", tags=["sla-policies"], responses={200: SlaPolicyAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, policy_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(_answer(sla_policies.sla_policy(policy_id)))

    @extend_schema(
        operation_id="sla_policies_edit",
        tags=["sla-policies"],
        request=SlaPolicyChange,
        parameters=[IF_MATCH],
        responses={200: SlaPolicyAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request, policy_id: UUID) -> Response:
        """Change the named fields of a policy."""
        values = _values(SlaPolicyChange, request)
        with tenant_scope(self.caller.tenant_id):
            policy = self._unchanged(request, policy_id)
            fields = replace(sla_policies.fields_of(policy), **values)
            return with_etag(_answer(sla_policies.save_policy(self.staff, fields, policy_id=policy_id)))

    @extend_schema(
        operation_id="sla_policies_delete",
        tags=["sla-policies"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, policy_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._unchanged(request, policy_id)
            sla_policies.delete_policy(self.staff, policy_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _unchanged(self, request: Request, policy_id: UUID) -> SlaPolicy:
        policy = sla_policies.lock_policy(self.staff, policy_id)
        require_unchanged(request, _answer(policy))
        return policy


def _values(serializer: type[RequestSerializer], request: Request) -> dict[str, Any]:
    values: dict[str, Any] = validated(serializer, request.data)
    return values | {name: [str(one) for one in values[name]] for name in ("teams", "deployments") if name in values}


def _answer(policy: SlaPolicy) -> Any:
    return SlaPolicyAnswer(_shown(policy)).data


def _shown(policy: SlaPolicy) -> dict[str, object]:
    return {"id": policy.pk} | asdict(sla_policies.fields_of(policy))
