"""REST API of outside tool servers, for owners; the same services as the console's pages.

A token comes in and is never shown. Accepting a tool is for an owner who is logged in, not for an API key: it records
what a person read (ADR 75). Servers are asked outside of every tenant scope.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals.enums import Risk
from apps.tenants.api_auth import OwnersView, RequestSerializer
from apps.tenants.enums import KeyScope
from apps.toolservers import queries, server_refresh, services
from apps.toolservers.models import OutsideTool, ToolServer
from apps.toolservers.schemas import Terms
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown, removed or foreign"),
}
_WRONG = {400: OpenApiResponse(description="`invalid`: a field is wrong")}


class ToolServerRequest(RequestSerializer):
    name = serializers.CharField(
        max_length=24, help_text="Lowercase letters, digits, hyphens; prefix of its tools' names"
    )
    url = serializers.CharField(
        max_length=500, required=False, help_text="https, and outside unless the operator allows the place"
    )
    skill = serializers.CharField(
        max_length=100,
        required=False,
        help_text="Instead of `url`: an approved skill, one of whose scripts is the server",
    )
    script = serializers.CharField(max_length=200, required=False, help_text="As `scripts/name.py`")
    args = serializers.ListField(child=serializers.CharField(max_length=300), required=False)
    places = serializers.ListField(
        child=serializers.CharField(max_length=300), required=False, help_text="`host:port` it reaches, of the skill's"
    )
    secret = serializers.CharField(
        required=False, default="", allow_blank=True, write_only=True, help_text="Its bearer token; shown nowhere"
    )

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        """Require either an address, or a skill and its script."""
        of_program = {"skill", "script", "args", "places"} & given.keys()
        if ("url" in given) == bool(of_program) or (of_program and not {"skill", "script"} <= given.keys()):
            raise serializers.ValidationError({"url": "Enter the URL, or a skill and its script."})
        return given


class ToolServerChange(RequestSerializer):
    enabled = serializers.BooleanField(required=False, help_text="A server that is off has tools in no run")
    secret = serializers.CharField(
        required=False, allow_blank=True, write_only=True, help_text="Another token from now on; empty for none"
    )


class TermsRequest(RequestSerializer):
    """Terms that make no sense are refused by the room (`tool_terms`, `tool_proof`)."""

    digest = serializers.CharField(max_length=64, help_text="`seen_digest` of the description that was read")
    acting = serializers.BooleanField(help_text="It makes changes, so every call needs an approval")
    risk = serializers.ChoiceField(choices=Risk.choices)
    level = serializers.CharField(max_length=60, required=False, default="", allow_blank=True)
    price = serializers.DecimalField(18, 9, required=False, default=Decimal(0), help_text="US dollars a call")
    timeout = serializers.IntegerField(required=False, default=30, help_text="Seconds, 1 to 120")
    proof = serializers.DictField(required=False, default=dict, help_text="`{tool, args, expect}` of an acting tool")


class OutsideToolAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    alias = serializers.CharField(help_text="The name under which models call it")
    name = serializers.CharField()
    state = serializers.CharField(help_text="new, accepted or suspended")
    problem = serializers.CharField(help_text="Why it cannot be accepted as it is described")
    said = serializers.DictField(help_text="The server's description as it was accepted")
    seen = serializers.DictField(help_text="The server's description now; empty when it no longer lists the tool")
    digest = serializers.CharField()
    seen_digest = serializers.CharField()
    acting = serializers.BooleanField()
    risk = serializers.CharField()
    level = serializers.CharField()
    price = serializers.DecimalField(18, 9, help_text="US dollars a call")
    timeout = serializers.IntegerField(help_text="Seconds")
    proof = serializers.DictField()
    accepted_at = serializers.DateTimeField(allow_null=True)


class ToolServerAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    transport = serializers.CharField(help_text="http, or stdio: a program in the sandbox")
    url = serializers.CharField()
    program = serializers.CharField(help_text="The skill it is a script of, pinned to its content")
    argv = serializers.ListField(child=serializers.CharField())
    egress = serializers.ListField(child=serializers.CharField(), help_text="The places that the program may reach")
    enabled = serializers.BooleanField()
    with_secret = serializers.SerializerMethodField()
    listed_at = serializers.DateTimeField(allow_null=True)
    failure = serializers.CharField(help_text="Why the last request failed; empty when it succeeded")
    failed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def get_with_secret(self, row: ToolServer) -> bool:
        return bool(row.secret)


class ToolServerWithTools(ToolServerAnswer):
    tools = serializers.SerializerMethodField()

    @extend_schema_field(OutsideToolAnswer(many=True))
    def get_tools(self, row: ToolServer) -> Any:
        return OutsideToolAnswer(queries.tools(row.pk), many=True).data


class ToolServers(OwnersView):
    """List servers, and register a new one."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="mcp_servers_list",
        tags=["mcp-servers"],
        responses={200: ToolServerAnswer(many=True), **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(ToolServerAnswer(queries.servers(), many=True).data)

    @extend_schema(
        operation_id="mcp_servers_register",
        tags=["mcp-servers"],
        request=ToolServerRequest,
        responses={
            201: ToolServerWithTools,
            **_WRONG,
            **_REFUSALS,
            409: OpenApiResponse(description="`skill_missing`: it is not in use"),
            422: OpenApiResponse(
                description="`tool_server_name`, `address_refused`, `tool_server_secret`, `tool_server_exists`, "
                "`too_many_servers`, `program_script`, `program_args`, `program_place`"
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Register a server. It is not contacted yet, and none of its tools is in use."""
        form = ToolServerRequest(data=request.data)
        form.is_valid(raise_exception=True)
        with tenant_scope(self.caller.tenant_id):
            add = services.add_server if "url" in form.validated_data else services.add_program
            row = add(**form.validated_data, actor=self.caller.actor)
            return _response(row.pk, status.HTTP_201_CREATED)


class OneToolServer(OwnersView):
    """Get the server with its tools, switch it on or off, change its token, or remove it."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(operation_id="mcp_server", tags=["mcp-servers"], responses={200: ToolServerWithTools, **_REFUSALS})
    def get(self, request: Request, server_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _response(server_id)

    @extend_schema(
        operation_id="mcp_server_change",
        tags=["mcp-servers"],
        request=ToolServerChange,
        responses={
            200: ToolServerWithTools,
            **_WRONG,
            **_REFUSALS,
            422: OpenApiResponse(description="`tool_server_secret`"),
        },
    )
    def patch(self, request: Request, server_id: UUID) -> Response:
        form = ToolServerChange(data=request.data)
        form.is_valid(raise_exception=True)
        given = form.validated_data
        with tenant_scope(self.caller.tenant_id):
            if "secret" in given:
                services.change_secret(server_id, given["secret"], actor=self.caller.actor)
            if "enabled" in given:
                services.set_enabled(server_id, given["enabled"], actor=self.caller.actor)
            return _response(server_id)

    @extend_schema(operation_id="mcp_server_remove", tags=["mcp-servers"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, server_id: UUID) -> Response:
        """Remove the server and its token; its tools are in no run any more."""
        with tenant_scope(self.caller.tenant_id):
            services.remove_server(server_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Looking(OwnersView):
    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="mcp_server_look",
        tags=["mcp-servers"],
        request=None,
        responses={
            200: ToolServerWithTools,
            **_REFUSALS,
            502: OpenApiResponse(description="`tool_server_unreachable`: `extra.code` says why"),
        },
    )
    def post(self, request: Request, server_id: UUID) -> Response:
        """Ask the server what it lists now. New tools wait for a person; what changed or is gone is suspended."""
        server_refresh.refresh_server(self.caller.tenant_id, server_id, actor=self.caller.actor)
        with tenant_scope(self.caller.tenant_id):
            return _response(server_id)


class Accepting(OwnersView):
    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="mcp_tool_accept",
        tags=["mcp-servers"],
        request=TermsRequest,
        responses={
            200: OutsideToolAnswer,
            **_WRONG,
            **_REFUSALS,
            403: OpenApiResponse(
                description="`forbidden_role`: not an owner; `person_needed`: an API key reads nothing"
            ),
            409: OpenApiResponse(description="`tool_changed`: its server describes it differently by now"),
            422: OpenApiResponse(description="`tool_terms`, `tool_proof`, `tool_unusable`"),
        },
    )
    def post(self, request: Request, server_id: UUID, tool_id: UUID) -> Response:
        """Take the tool into use, exactly as it is described under `digest`, on these terms."""
        if self.caller.person is None:
            raise SilasError(ErrorCode.PERSON_NEEDED)
        form = TermsRequest(data=request.data)
        form.is_valid(raise_exception=True)
        given = dict(form.validated_data)
        digest, by = given.pop("digest"), self.caller.person.pk
        with tenant_scope(self.caller.tenant_id):
            tool = _tool(server_id, tool_id)
            services.accept_tool(tool.pk, Terms(**given), digest=digest, by=by, actor=self.caller.actor)
            return Response(OutsideToolAnswer(_tool(server_id, tool_id)).data)


class Suspending(OwnersView):
    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="mcp_tool_suspend",
        tags=["mcp-servers"],
        request=None,
        responses={200: OutsideToolAnswer, **_REFUSALS},
    )
    def post(self, request: Request, server_id: UUID, tool_id: UUID) -> Response:
        """Suspend the tool until a person accepts it again."""
        with tenant_scope(self.caller.tenant_id):
            services.suspend_tool(_tool(server_id, tool_id).pk, actor=self.caller.actor)
            return Response(OutsideToolAnswer(_tool(server_id, tool_id)).data)


def _tool(server_id: UUID, tool_id: UUID) -> OutsideTool:
    return queries.tool(queries.server(server_id).pk, tool_id)


def _response(server_id: UUID, code: int = status.HTTP_200_OK) -> Response:
    return Response(ToolServerWithTools(queries.server(server_id)).data, code)
