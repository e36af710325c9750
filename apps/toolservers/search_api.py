"""REST API of web search: the provider with which the company searches, on which terms. Its key is never read back."""

from __future__ import annotations

from decimal import Decimal

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.api_auth import OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from apps.toolservers.enums import SearchProvider
from apps.toolservers.models import WebSearch
from apps.toolservers.web import services
from apps.toolservers.web.queries import web_search
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope


class WebSearchRequest(RequestSerializer):
    provider = serializers.ChoiceField(choices=SearchProvider.choices)
    key = serializers.CharField(
        max_length=500,
        default="",
        allow_blank=True,
        write_only=True,
        help_text="Empty keeps the present one for the same provider and address; shown nowhere",
    )
    base_url = serializers.CharField(max_length=500, default="", allow_blank=True, help_text="Of your own SearXNG")
    domains = serializers.ListField(
        child=serializers.CharField(max_length=253), default=list, max_length=100, help_text="Empty: anywhere"
    )
    most_results = serializers.IntegerField(default=5, min_value=1, max_value=10)
    price = serializers.DecimalField(18, 9, default=Decimal(0), min_value=0, help_text="US dollars a search")
    level = serializers.CharField(max_length=60, default="public", help_text="Access level of what is found")


class WebSearchAnswer(serializers.Serializer[object]):
    provider = serializers.ChoiceField(choices=SearchProvider.choices)
    with_key = serializers.SerializerMethodField(help_text="Whether a key of the company's own is stored")
    base_url = serializers.CharField()
    domains = serializers.ListField(child=serializers.CharField())
    most_results = serializers.IntegerField()
    price = serializers.DecimalField(18, 9, help_text="US dollars a search")
    level = serializers.CharField()
    failure = serializers.CharField(help_text="Why the last search failed, as a code; empty when it succeeded")
    changed_at = serializers.DateTimeField()

    def get_with_key(self, row: WebSearch) -> bool:
        return bool(row.key)


class WebSearchSettings(OwnersView):
    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(operation_id="web_search_get", tags=["mcp-servers"], responses={200: WebSearchAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """Read how the company searches the web. 404 where no search is set."""
        with tenant_scope(self.caller.tenant_id):
            return _stored()

    @extend_schema(
        operation_id="web_search_set",
        tags=["mcp-servers"],
        request=WebSearchRequest,
        responses={
            200: WebSearchAnswer,
            **_REFUSALS,
            422: OpenApiResponse(description="`address_refused`, `search_key`, `search_terms`, `search_provider`"),
        },
    )
    def put(self, request: Request) -> Response:
        """Search with this provider from now on."""
        values = validated(WebSearchRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            services.set_search(values.pop("provider"), actor=self.caller.actor, **values)
            return _stored()

    @extend_schema(operation_id="web_search_remove", tags=["mcp-servers"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request) -> Response:
        """Remove the search and its key: nothing is searched any more."""
        with tenant_scope(self.caller.tenant_id):
            services.remove_search(actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _stored() -> Response:
    row = web_search()
    if row is None:
        raise NotFound()
    return uncached(WebSearchAnswer(row).data)
