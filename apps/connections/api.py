"""REST API of connections, the form for a secret, and the callback of a sign-in (contract interfaces; spec 5.10.1)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET
from drf_spectacular.utils import OpenApiResponse, extend_schema
from pydantic import ValidationError
from rest_framework import serializers, status
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from apps.connections import pending_secrets, queries
from apps.connections.models import Connection
from apps.connections.schemas import NewConnection
from apps.connections.services import lifecycle, requests
from apps.tenants.api_auth import MembersView, RequestSerializer, ScopedView, member_caller, validated
from apps.tenants.enums import Capability, KeyScope
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_NO_STORE = {"Cache-Control": "no-store"}
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: this role changes no connections"),
    404: OpenApiResponse(description="`not_found`: unknown, removed or foreign"),
}
_CONFLICTS = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    409: OpenApiResponse(description="`connection_settled`, `setup_under_way`, `setup_over`: not as it is now"),
}


class StaffSecretRequest(RequestSerializer):
    """The room checks the value's length, in bytes."""

    value = serializers.CharField(trim_whitespace=False)


def store_for_connection(request: Request, ref_id: UUID) -> None:
    """Store a secret that a set-up asked for, as the member whose login this request carries."""
    caller = member_caller(request)
    form = StaffSecretRequest(data=request.data)
    form.is_valid(raise_exception=True)
    with tenant_scope(caller.tenant_id):
        pending_secrets.store_secret(ref_id, form.validated_data["value"], user=caller.user)


class ConnectionsRequest(RequestSerializer):
    limit = serializers.IntegerField(default=50, help_text="Kept between 1 and 200")
    offset = serializers.IntegerField(default=0, help_text="Below 0 is 0")
    domain = serializers.CharField(default="", max_length=120, allow_blank=True)


class ConnectionRequest(RequestSerializer):
    skill = serializers.CharField(max_length=100, help_text="A connection skill: its name, or `name@digest`")
    name = serializers.CharField(max_length=120)
    domain = serializers.CharField(max_length=120, required=False, allow_blank=True)
    settings = serializers.DictField(required=False, help_text="What the skill has to know and is no secret")
    permissions = serializers.ListField(child=serializers.CharField(max_length=120), required=False)
    health_check = serializers.CharField(max_length=100, required=False, help_text="Five fields of cron")


class ConnectionAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    domain = serializers.CharField()
    skill = serializers.CharField()
    provider = serializers.CharField()
    identity = serializers.CharField()
    auth_strategy = serializers.CharField()
    status = serializers.CharField()
    is_usual = serializers.BooleanField(help_text="Of several accounts of its skill, tools use this one")
    tiers = serializers.ListField(child=serializers.CharField(), source="permissions")
    permissions_granted = serializers.ListField(child=serializers.CharField())
    permissions_available = serializers.ListField(child=serializers.CharField())
    settings = serializers.DictField()
    failure_type = serializers.SerializerMethodField()
    token_expires_at = serializers.DateTimeField(allow_null=True)
    refresh_token_expires_at = serializers.DateTimeField(allow_null=True)
    last_health_check = serializers.DateTimeField(allow_null=True)
    last_refresh = serializers.DateTimeField(allow_null=True)
    last_used = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    def get_failure_type(self, row: Connection) -> str:
        return str((row.failure or {}).get("failure_type") or (row.failure or {}).get("code") or "")


class SetupAnswerShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    purpose = serializers.CharField()
    state = serializers.CharField()
    step_id = serializers.CharField()
    step = serializers.DictField(allow_null=True, help_text="What is asked now; a secret goes to `/secrets/{ref_id}`")
    failure = serializers.DictField(allow_null=True)
    summary = serializers.DictField(allow_null=True)
    deadline = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class StepRequest(RequestSerializer):
    step_id = serializers.CharField(max_length=60)
    action = serializers.CharField(max_length=20, help_text="`done` or `trouble`")


class ReconnectRequest(RequestSerializer):
    permissions = serializers.ListField(child=serializers.CharField(max_length=120), required=False)


class Connections(MembersView):
    """List connections, and request a new one: a card is opened for a person to approve."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connections_list",
        tags=["connections"],
        parameters=[ConnectionsRequest],
        responses={200: ConnectionAnswer(many=True), 400: OpenApiResponse(description="`invalid`"), **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        form = ConnectionsRequest(data=request.query_params)
        form.is_valid(raise_exception=True)
        filters = form.validated_data
        begin, many = min(max(filters["offset"], 0), 10_000_000), min(max(filters["limit"], 1), 200)
        with tenant_scope(self.caller.tenant_id):
            rows = queries.connections(domain=filters["domain"])[begin : begin + many]
            return Response(ConnectionAnswer(rows, many=True).data, headers=_NO_STORE)

    @extend_schema(
        operation_id="connections_create",
        tags=["connections"],
        request=ConnectionRequest,
        responses={
            201: ConnectionAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            **_REFUSALS,
            409: OpenApiResponse(description="`skill_missing`, `not_a_connection`"),
            422: OpenApiResponse(description="`permission_unknown`"),
        },
    )
    def post(self, request: Request) -> Response:
        form = ConnectionRequest(data=request.data)
        form.is_valid(raise_exception=True)
        callback = request.build_absolute_uri(reverse("connections-callback"))
        with tenant_scope(self.caller.tenant_id):
            wanted = _new_connection(form.validated_data)
            row, _ = requests.request_connection(
                wanted, user=self.caller.user, actor=self.caller.actor, callback=callback
            )
            data = ConnectionAnswer(queries.connection(row.pk)).data
        return Response(data, status=status.HTTP_201_CREATED, headers=_NO_STORE)


class OneConnection(MembersView):
    """Get a connection, or remove it and its credentials."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(operation_id="connection", tags=["connections"], responses={200: ConnectionAnswer, **_REFUSALS})
    def get(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return _response(connection_id)

    @extend_schema(operation_id="connection_remove", tags=["connections"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            lifecycle.remove(connection_id, actor=self.caller.actor, user=self.caller.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class PauseConnection(MembersView):
    """Pause a connection: no tool uses it until it is resumed."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_pause",
        tags=["connections"],
        request=None,
        responses={200: ConnectionAnswer, **_REFUSALS, **_CONFLICTS},
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            lifecycle.pause(connection_id, actor=self.caller.actor, user=self.caller.user)
            return _response(connection_id)


class ResumeConnection(MembersView):
    """Resume a connection: it is used and checked again."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_resume",
        tags=["connections"],
        request=None,
        responses={200: ConnectionAnswer, **_REFUSALS, **_CONFLICTS},
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            lifecycle.resume(connection_id, actor=self.caller.actor, user=self.caller.user)
            return _response(connection_id)


class ChooseConnection(MembersView):
    """Make tools use this one of several accounts of its skill."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_choose",
        tags=["connections"],
        request=None,
        responses={200: ConnectionAnswer, **_REFUSALS, **_CONFLICTS},
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            lifecycle.choose(connection_id, actor=self.caller.actor, user=self.caller.user)
            return _response(connection_id)


class WidenRequest(RequestSerializer):
    permissions = serializers.ListField(
        child=serializers.CharField(max_length=200), allow_empty=False, max_length=100, help_text="That are missing"
    )
    reason = serializers.CharField(max_length=300, help_text="Shown on the card")


class WidenAnswer(serializers.Serializer[Any]):
    card = serializers.UUIDField(
        allow_null=True, help_text="That asks for the permissions; null if none is missing or a card is open"
    )


class WidenConnection(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_widen",
        tags=["connections"],
        request=WidenRequest,
        responses={
            200: WidenAnswer,
            **_REFUSALS,
            **_CONFLICTS,
            422: OpenApiResponse(description="`permission_unknown`: the skill does not know this permission"),
        },
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        """Ask for more permissions: a card opens, and who approves it signs in again."""
        values = validated(WidenRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            row = queries.connection(connection_id)
            wanted = [*row.permissions_granted, *values["permissions"]]
            card = requests.open_escalation_card(row, wanted, values["reason"])
            return Response({"card": card.pk if card else None}, headers=_NO_STORE)


class ReconnectConnection(MembersView):
    """Sign in again, with the approved permissions or fewer."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_reconnect",
        tags=["connections"],
        request=ReconnectRequest,
        responses={202: SetupAnswerShape, **_REFUSALS, **_CONFLICTS},
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        form = ReconnectRequest(data=request.data)
        form.is_valid(raise_exception=True)
        with tenant_scope(self.caller.tenant_id):
            queries.connection(connection_id)
            setup = requests.reconnect(
                connection_id,
                actor=self.caller.actor,
                user=self.caller.user,
                permissions=form.validated_data.get("permissions"),
            )
            data = SetupAnswerShape(setup).data
        return Response(data, status=status.HTTP_202_ACCEPTED, headers=_NO_STORE)


class ConnectionSetup(MembersView):
    """Get the step that a set-up shows, answer it, or cancel the set-up."""

    reading, writing = KeyScope.CONNECTIONS_READ, KeyScope.CONNECTIONS_WRITE

    @extend_schema(
        operation_id="connection_setup", tags=["connections"], responses={200: SetupAnswerShape, **_REFUSALS}
    )
    def get(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            setup = queries.setup_under_way(connection_id) or queries.setups(connection_id).first()
            if setup is None:
                raise NotFound()
            return Response(SetupAnswerShape(setup).data, headers=_NO_STORE)

    @extend_schema(
        operation_id="connection_setup_answer",
        tags=["connections"],
        request=StepRequest,
        responses={
            200: SetupAnswerShape,
            **_REFUSALS,
            409: OpenApiResponse(description="`setup_not_asking`, `answered_already`"),
            422: OpenApiResponse(description="`answer_unknown`"),
        },
    )
    def post(self, request: Request, connection_id: UUID) -> Response:
        form = StepRequest(data=request.data)
        form.is_valid(raise_exception=True)
        with tenant_scope(self.caller.tenant_id):
            setup = lifecycle.answer(
                connection_id, **form.validated_data, actor=self.caller.actor, user=self.caller.user
            )
            return Response(SetupAnswerShape(setup).data, headers=_NO_STORE)

    @extend_schema(
        operation_id="connection_setup_cancel",
        tags=["connections"],
        responses={200: SetupAnswerShape, **_REFUSALS, **_CONFLICTS},
    )
    def delete(self, request: Request, connection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            setup = lifecycle.cancel(connection_id, actor=self.caller.actor, user=self.caller.user)
            return Response(SetupAnswerShape(setup).data, headers=_NO_STORE)


@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Take the browser of a member back from a service's sign-in; its parameters are passed to the set-up alone."""
    api_request = Request(request, authenticators=[SessionAuthentication()])
    caller = member_caller(api_request) if request.user.is_authenticated else None
    if caller is None or not request.user.is_authenticated:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Log in and start over."))
    parameters = {name: str(value) for name, value in request.GET.items()}
    with tenant_scope(caller.tenant_id):
        browser = request.session.session_key or ""
        setup = lifecycle.finish_redirect(
            require_id(parameters.get("state", "")), parameters, user=request.user, browser=browser
        )
    response = redirect(reverse("console-connection", args=[setup.connection_id]))
    response["Referrer-Policy"] = "no-referrer"
    return response


def _response(connection_id: UUID) -> Response:
    return Response(ConnectionAnswer(queries.connection(connection_id)).data, headers=_NO_STORE)


def _new_connection(values: dict[str, Any]) -> NewConnection:
    """Raises 400 `invalid` with the names of the fields that are wrong, never their values."""
    try:
        return NewConnection.model_validate(values)
    except ValidationError as error:
        fields = sorted({str(item["loc"][0]) if item["loc"] else "all" for item in error.errors()})
        raise SilasError(ErrorCode.INVALID, gettext("Some fields are invalid."), extra={"fields": fields}) from None
