"""The HTTP endpoint for everything that is remembered about one customer."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from apps.tenants.api_auth import RequestSerializer, ScopedView
from apps.tenants.enums import Capability, KeyScope
from apps.visitors import customer_memories
from kernel.tenancy import tenant_scope


class CustomerMemoriesRequest(RequestSerializer):
    customer = serializers.CharField(max_length=120, help_text="The customer's id, as your site signs it")
    kind = serializers.ChoiceField(choices=["json", "html"], default="json", help_text="`html` is a page to read")


class CustomerMemories(ScopedView):
    capability = Capability.ANSWER
    reading, writing = KeyScope.MEMORY_READ, KeyScope.MEMORY_WRITE

    @extend_schema(
        operation_id="memories_of_customer",
        tags=["memories"],
        parameters=[CustomerMemoriesRequest],
        responses={
            (200, "application/json"): OpenApiTypes.OBJECT,
            (200, "text/html"): OpenApiTypes.STR,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
            403: OpenApiResponse(description="`forbidden_role`; `forbidden_scope`: the key has other scopes"),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        """Export everything that is remembered about a customer, to hand to them: texts, sources and dates."""
        form = CustomerMemoriesRequest(data=request.query_params)
        form.is_valid(raise_exception=True)
        customer, kind = form.validated_data["customer"], form.validated_data["kind"]
        export = customer_memories.export_html if kind == "html" else customer_memories.export_json
        with tenant_scope(self.caller.tenant_id):
            content = export(customer, actor=self.caller.actor)
        media = "text/html" if kind == "html" else "application/json"
        headers = {"Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="memories.{kind}"'}
        return HttpResponse(content, content_type=f"{media}; charset=utf-8", headers=headers)
