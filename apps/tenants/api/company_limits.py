"""REST API of retention and of visitors' limits, for owners and credentials with the scopes `settings:*`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants import company_limits
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    OwnersView,
    RequestSerializer,
    require_unchanged,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from apps.tenants.models.retention import MOST_DAYS
from kernel.tenancy import tenant_scope

_MOST = 2**31 - 1
_REFUSALS: dict[int, Any] = {400: RESOURCE_REFUSALS[400], **OWNERS_REFUSALS}


def _days(help_text: str) -> Any:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST_DAYS, help_text=help_text
    )


def _limit(help_text: str) -> Any:
    return serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=_MOST, help_text=help_text)


class RetentionDays(serializers.Serializer[Any]):
    """Days after which data is deleted."""

    conversation_days = _days("Texts of conversations, counted from the last message; null: for good")
    memory_days = _days("Memories; null: the installation's")
    skill_days = _days("Drafts of skills without a change, and packages that wait for review; null: for good")
    message_days = _days("Finished background jobs; null: the installation's")


class RetentionRequest(RetentionDays, RequestSerializer):
    pass


class RetentionAnswer(RetentionDays):
    installation = RetentionDays(help_text="What holds where a field is null; null: for good")


class VisitorLimitNumbers(serializers.Serializer[Any]):
    """How much visitors may send."""

    messages_a_minute = _limit("Messages a minute in one conversation")
    address_messages_a_minute = _limit("Messages a minute from one internet address")
    tenant_messages_a_minute = _limit("Messages a minute from all visitors together")
    sockets = _limit("Windows in which one conversation may be open at once")
    model_runs_a_minute = _limit("Runs of a model a minute in one conversation")
    tenant_model_runs_a_minute = _limit("Runs of models a minute in all conversations together")
    pending_turns = _limit("Messages of one conversation that may wait for an answer")
    tenant_pending_turns = _limit("Messages of all conversations that may wait for an answer")


class VisitorLimitsRequest(VisitorLimitNumbers, RequestSerializer):
    pass


class VisitorLimitsAnswer(VisitorLimitNumbers):
    installation = VisitorLimitNumbers(help_text="What holds where a field is null")


class RetentionOfCompany(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(operation_id="retention_get", tags=["settings"], responses={200: RetentionAnswer, **OWNERS_REFUSALS})
    def get(self, request: Request) -> Response:
        """Read for how long the company keeps its data."""
        with tenant_scope(self.caller.tenant_id):
            return _retention(company_limits.retention_values())

    @extend_schema(
        operation_id="retention_edit",
        tags=["settings"],
        request=RetentionRequest,
        parameters=[IF_MATCH],
        responses={200: RetentionAnswer, **_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request) -> Response:
        """Change for how long the company keeps its data; what is left out stays. What is older is deleted at the next
        clean-up and can't be restored."""
        changes = validated(RetentionRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, company_limits.retention_values(lock=True))
            return _retention(company_limits.change_retention(changes, actor=self.caller.actor))


class VisitorLimitsOfCompany(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="visitor_limits_get", tags=["settings"], responses={200: VisitorLimitsAnswer, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """Read how much the company's visitors may send."""
        with tenant_scope(self.caller.tenant_id):
            return _limits(company_limits.visitor_limit_values())

    @extend_schema(
        operation_id="visitor_limits_edit",
        tags=["settings"],
        request=VisitorLimitsRequest,
        parameters=[IF_MATCH],
        responses={200: VisitorLimitsAnswer, **_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request) -> Response:
        """Change how much the company's visitors may send; what is left out stays, null uses the installation's."""
        changes = validated(VisitorLimitsRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, company_limits.visitor_limit_values(lock=True))
            return _limits(company_limits.change_visitor_limits(changes, actor=self.caller.actor))


def _retention(own: dict[str, int | None]) -> Response:
    return with_etag({**own, "installation": company_limits.installation_days()}, of=own)


def _limits(own: dict[str, int | None]) -> Response:
    return with_etag({**own, "installation": settings.VISITOR_LIMITS}, of=own)
