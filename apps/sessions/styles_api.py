"""REST API for owners to hear a chatbot in its saved style and in another one. Nothing is saved."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.persona import rules
from apps.persona.enums import Axis, Preset
from apps.persona.queries import baseline_of
from apps.sessions import style_preview
from apps.sessions.style_preview import Style
from apps.tenants.api_auth import RESOURCE_REFUSALS, OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope


class AxesRequest(RequestSerializer):
    def get_fields(self) -> dict[str, Any]:
        return {axis.value: serializers.FloatField(min_value=0, max_value=1, required=False) for axis in Axis}


class ComparisonRequest(RequestSerializer):
    question = serializers.CharField(max_length=style_preview.LONGEST_QUESTION)
    persona = serializers.CharField(required=False, allow_blank=True, max_length=4000, help_text="Else the saved one")
    preset = serializers.ChoiceField(required=False, choices=Preset.choices, help_text="Else the saved axes")
    axes = AxesRequest(required=False, help_text="In place of those of the preset, or the saved ones")


class StyledAnswerAnswer(serializers.Serializer[object]):
    text = serializers.CharField()
    instructions = serializers.CharField(help_text="What the model read of the style")
    failed = serializers.CharField(help_text="Why the chatbot's model did not answer; empty if it did")


class ComparisonAnswer(serializers.Serializer[object]):
    model = serializers.CharField()
    follows = serializers.BooleanField(help_text="Whether the model follows a style; the built-in one does not")
    saved = StyledAnswerAnswer()
    given = StyledAnswerAnswer()


class CompareStyles(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="styles_compare",
        tags=["personas"],
        request=ComparisonRequest,
        responses={200: ComparisonAnswer, **RESOURCE_REFUSALS},
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        """Answer a question in the saved style and in the given one, at the chatbot's expense."""
        sent = validated(ComparisonRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            place = deployment_by_id(deployment_id)
            saved = baseline_of(place.pk).value
        given = saved
        if "preset" in sent:
            given = None if sent["preset"] == Preset.OFF else rules.preset_axes(Preset(sent["preset"]))
        if sent.get("axes"):
            given = {**(given or rules.axes_of({})), **sent["axes"]}
        styles = (Style(place.persona, saved), Style(sent.get("persona", place.persona), given))
        found = async_to_sync(style_preview.compare)(self.caller.tenant_id, place.pk, sent["question"], styles)
        answer = {"model": found.model, "follows": found.follows}
        return uncached(ComparisonAnswer({**answer, "saved": found.answers[0], "given": found.answers[1]}).data)
