"""REST API of macros (contract interfaces, HTTP): everybody's for a program, and a member's own as well."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import macros, steps
from apps.inbox.api import MemberName, StaffView
from apps.inbox.enums import Do
from apps.inbox.macros import MAX_NAME
from apps.inbox.steps import MAX_STEPS
from apps.sessions.queries import session_by_id
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
from apps.tenants.enums import Capability
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, OpenApiResponse] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `bad_name`, `bad_steps`, `invalid_text`: a field is wrong"),
    409: OpenApiResponse(description="`name_taken`; `too_many`"),
}


class MacroStep(serializers.Serializer[object]):
    do = serializers.ChoiceField(choices=Do.values)
    value = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=4000,
        help_text="An id, a choice or a text; `me` assigns to whoever runs the macro, an empty one unassigns",
    )


class MacroAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    owner = MemberName(allow_null=True, help_text="Whose personal macro it is; null for everybody's")
    steps = MacroStep(many=True)


class MacrosAnswer(serializers.Serializer[object]):
    macros = MacroAnswer(many=True)


class MacroRequest(RequestSerializer):
    name = serializers.CharField(max_length=MAX_NAME)
    is_personal = serializers.BooleanField(default=False, help_text="Only for members")
    steps = serializers.ListField(child=MacroStep(), min_length=1, max_length=MAX_STEPS)


class MacroRunRequest(RequestSerializer):
    macro = serializers.UUIDField()
    preview = serializers.BooleanField(default=False, help_text="Only say what would happen")
    steps_hash = serializers.CharField(
        required=False, max_length=64, help_text="That of the preview; 409 `macro_changed` if the steps are others now"
    )


class MacroEffect(serializers.Serializer[object]):
    words = serializers.CharField(help_text="What the step does")
    changes = serializers.BooleanField(help_text="Whether it changes the conversation")
    text = serializers.CharField(help_text="The note or reply, if it is one")


class MacroRunAnswer(serializers.Serializer[object]):
    effects = MacroEffect(many=True)
    steps_hash = serializers.CharField(help_text="What tells the macro's steps from any others")
    reply = serializers.CharField(help_text="The reply to be sent, which the macro does not send; or empty")


class Macros(StaffView):
    @extend_schema(operation_id="macros_list", tags=["macros"], responses={200: MacrosAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request) -> Response:
        """List all macros by name."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(MacrosAnswer({"macros": macros.macros_for(self.staff)}).data)

    @extend_schema(
        operation_id="macros_create",
        tags=["macros"],
        request=MacroRequest,
        responses={201: MacroAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        values = validated(MacroRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            return with_etag(MacroAnswer(macros.save_macro(self.staff, **values)).data, status.HTTP_201_CREATED)


class OneMacro(StaffView):
    @extend_schema(operation_id="macros_get", tags=["macros"], responses={200: MacroAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request, macro_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(MacroAnswer(macros.macro_for(self.staff, macro_id)).data)

    @extend_schema(
        operation_id="macros_replace",
        tags=["macros"],
        request=MacroRequest,
        parameters=[IF_MATCH],
        responses={200: MacroAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def put(self, request: Request, macro_id: UUID) -> Response:
        values = validated(MacroRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, macro_id)
            return with_etag(MacroAnswer(macros.save_macro(self.staff, macro_id=macro_id, **values)).data)

    @extend_schema(
        operation_id="macros_delete",
        tags=["macros"],
        parameters=[IF_MATCH],
        responses={204: None, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, macro_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, macro_id)
            macros.delete_macro(self.staff, macro_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_unchanged(self, request: Request, macro_id: UUID) -> None:
        require_unchanged(request, MacroAnswer(macros.lock_macro(self.staff, macro_id)).data)


class SessionMacro(StaffView):
    capability = Capability.ANSWER

    @extend_schema(
        operation_id="session_macros_run",
        tags=["macros"],
        request=MacroRunRequest,
        responses={
            200: MacroRunAnswer,
            **RESOURCE_REFUSALS,
            409: OpenApiResponse(
                description="`macro_changed`; `owned_by_other`: a colleague answers; `assignee_unfit`"
            ),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Run a macro on a conversation, all of its steps or none; or preview what it would do. A reply is not sent."""
        values, by = validated(MacroRunRequest, request.data), self.staff
        with tenant_scope(self.caller.tenant_id):
            session = session_by_id(session_id)
            macro, draft = macros.macro_for(by, values["macro"]), ""
            effects = steps.preview(macro.steps, session.pk, by)
            if not values["preview"]:
                draft = macros.run_macro(session.pk, by, macro.pk, steps_hash=values.get("steps_hash"))
            told = {"effects": effects, "steps_hash": steps.hash_of(macro.steps), "reply": draft}
            return uncached(MacroRunAnswer(told).data)
