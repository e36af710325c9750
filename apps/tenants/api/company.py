"""REST API of the company itself, for owners and credentials with the scopes `settings:*`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants import company
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
from kernel.tenancy import tenant_scope


class CompanyRequest(RequestSerializer):
    name = serializers.CharField(required=False, max_length=120)
    timezone = serializers.CharField(required=False, max_length=60, help_text="Such as Europe/London")


class CompanyAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    timezone = serializers.CharField(help_text="Of days, months and hours where nothing else names one")


class Company(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(operation_id="company_get", tags=["settings"], responses={200: CompanyAnswer, **OWNERS_REFUSALS})
    def get(self, request: Request) -> Response:
        """Read the company's name and time zone."""
        with tenant_scope(self.caller.tenant_id):
            return with_etag(company.company_values())

    @extend_schema(
        operation_id="company_edit",
        tags=["settings"],
        request=CompanyRequest,
        parameters=[IF_MATCH],
        responses={200: CompanyAnswer, 400: RESOURCE_REFUSALS[400], **OWNERS_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request) -> Response:
        """Change the company's name and time zone; what is left out stays."""
        changes = validated(CompanyRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, company.company_values(lock=True))
            return with_etag(company.change_company(changes, actor=self.caller.actor))
