"""REST API for owners to read and change the personality of a deployment (spec 8.1, personality endpoints)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.persona import directives, queries, rules, services
from apps.persona.enums import Axis, Context, EventType, Preset
from apps.persona.models import PersonaState
from apps.tenants.api_auth import OwnersView, RequestSerializer, validated
from apps.tenants.enums import KeyScope
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_INVALID = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    422: OpenApiResponse(description="`invalid_persona`: an unknown axis, or a value out of range"),
}


class PersonaAnswer(serializers.Serializer[Any]):
    deployment = serializers.UUIDField()
    preset = serializers.ChoiceField(choices=Preset.choices)
    axes = serializers.DictField(child=serializers.FloatField(), help_text="The baseline, 0 to 1 by axis")
    effective = serializers.DictField(help_text="By context: the axes in a neutral mood")
    directives = serializers.CharField(help_text="What models are told in the default context; empty when off")


class PresetRequest(RequestSerializer):
    preset = serializers.ChoiceField(choices=Preset.choices)


class TuneRequest(RequestSerializer):
    delta = serializers.DictField(child=serializers.FloatField(min_value=-1, max_value=1), help_text="By axis")


class FeedbackRequest(RequestSerializer):
    type = serializers.ChoiceField(choices=[kind.value for kind in rules.AXIS_DELTAS])


class EventAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    event_type = serializers.CharField()
    trusted = serializers.BooleanField()
    delta_axes = serializers.DictField(child=serializers.FloatField())
    delta_mood = serializers.DictField(child=serializers.FloatField())
    origin = serializers.CharField(source="source", help_text="`runtime` or `owner_feedback`")
    created_at = serializers.DateTimeField()


class Persona(OwnersView):
    """The personality of a deployment."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(operation_id="persona_read", tags=["personas"], responses={200: PersonaAnswer, **_REFUSALS})
    def get(self, request: Request, deployment_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            return Response(_answer(deployment, queries.state_of(deployment.pk)))


class _Change(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    def _changed(self, deployment_id: UUID, change: Callable[[Deployment], PersonaState]) -> Response:
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            return Response(_answer(deployment, change(deployment)))


class ChosenPreset(_Change):
    """Choose a named set of axes, or turn the personality off."""

    @extend_schema(
        operation_id="persona_preset",
        tags=["personas"],
        request=PresetRequest,
        responses={200: PersonaAnswer, **_INVALID, **_REFUSALS},
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        fields = validated(PresetRequest, request.data)
        preset = Preset(fields["preset"])
        return self._changed(
            deployment_id, lambda deployment: services.choose_preset(deployment, preset, actor=self.caller.actor)
        )


class Tuning(_Change):
    """Move axes of the baseline."""

    @extend_schema(
        operation_id="persona_tune",
        tags=["personas"],
        request=TuneRequest,
        responses={200: PersonaAnswer, **_INVALID, **_REFUSALS},
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        fields = validated(TuneRequest, request.data)
        deltas = fields["delta"]
        return self._changed(
            deployment_id, lambda deployment: services.tune(deployment, deltas, actor=self.caller.actor)
        )


class Feedback(_Change):
    """Say how the chatbot sounds; the baseline moves by a small step."""

    @extend_schema(
        operation_id="persona_feedback",
        tags=["personas"],
        request=FeedbackRequest,
        responses={200: PersonaAnswer, **_INVALID, **_REFUSALS},
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        fields = validated(FeedbackRequest, request.data)
        kind = EventType(fields["type"])
        return self._changed(
            deployment_id, lambda deployment: services.give_feedback(deployment, kind, actor=self.caller.actor)
        )


class Events(OwnersView):
    """What moved the personality and the moods of its conversations, newest first, at most 100."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="persona_events", tags=["personas"], responses={200: EventAnswer(many=True), **_REFUSALS}
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            return Response(EventAnswer(queries.newest_events(deployment.pk), many=True).data)


def _answer(deployment: Deployment, state: PersonaState | None) -> dict[str, Any]:
    axes = rules.axes_of(state.baseline_axes if state else {})
    preset = Preset(state.active_preset) if state else Preset.OFF
    effective = {context.value: rules.effective_axes(axes, context, rules.NEUTRAL_MOOD) for context in Context}
    told = directives.render(rules.levels_of(effective[Context.DEFAULT])) if preset != Preset.OFF else ""
    answer = {
        "deployment": deployment.pk,
        "preset": preset,
        "axes": {axis.value: axes[axis] for axis in Axis},
        "effective": {name: {axis.value: round(found[axis], 4) for axis in Axis} for name, found in effective.items()},
        "directives": told,
    }
    return dict(PersonaAnswer(answer).data)
