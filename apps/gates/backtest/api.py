"""The backtest of a gate's version over HTTP, for owners (contract interfaces)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.gates.backtest.runs import MOST_ASKED, MOST_MESSAGES, Change, backtest_version
from apps.tenants.api_auth import OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope


class DryRunRequest(RequestSerializer):
    version = serializers.IntegerField(min_value=1)
    deployment = serializers.UUIDField(required=False, help_text="For gates of all deployments: whose messages")
    messages = serializers.IntegerField(min_value=1, max_value=MOST_MESSAGES, default=MOST_MESSAGES)
    ask_models = serializers.BooleanField(
        default=False,
        help_text=f"Ask the models of gates too, about the newest {MOST_ASKED}; it costs what models cost",
    )


class OutcomeAnswer(serializers.Serializer[Any]):
    action = serializers.CharField()
    code = serializers.CharField()
    gate = serializers.CharField(help_text="The gate that decides; empty when all let it pass")
    rewritten = serializers.BooleanField()


class ChangeAnswer(serializers.Serializer[Any]):
    trigger = serializers.CharField()
    place = serializers.UUIDField(help_text="The conversation, or the work item of a call")
    seq = serializers.IntegerField(help_text="The message's number in its conversation; 0 for a call")
    at = serializers.DateTimeField()
    before = OutcomeAnswer()
    after = OutcomeAnswer()


class DryRunAnswer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    deployment = serializers.UUIDField()
    found = serializers.IntegerField()
    read = serializers.IntegerField(help_text="Fewer than `found` when time ran out")
    before = serializers.DictField(child=serializers.IntegerField(), help_text="How many of each action, as it is")
    after = serializers.DictField(child=serializers.IntegerField(), help_text="How many, with this version in force")
    changes = ChangeAnswer(many=True)
    untried = serializers.CharField(help_text="Why nothing was decided: llm, after_step, nothing_recorded")
    skipped = serializers.ListField(child=serializers.CharField(), help_text="Gates that were not asked")


class GateDryRun(OwnersView):
    """Try a version on the newest recorded messages of a deployment; answers with ids and outcomes, no texts."""

    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    @extend_schema(
        operation_id="gates_dry_run",
        tags=["gates"],
        request=DryRunRequest,
        responses={
            200: DryRunAnswer,
            400: OpenApiResponse(description="`invalid`, `deployment_missing`"),
            401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
            403: OpenApiResponse(description="`forbidden_role`: not an owner"),
            404: OpenApiResponse(description="`not_found`: unknown or foreign"),
            422: OpenApiResponse(description="`gate_invalid`: this version is no gate that could be run"),
        },
    )
    def post(self, request: Request, gate_id: UUID) -> Response:
        asked = validated(DryRunRequest, request.data)
        done = backtest_version(
            self.caller.tenant_id,
            gate_id,
            asked["version"],
            actor=self.caller.actor,
            deployment_id=asked.get("deployment"),
            messages=asked["messages"],
            ask_models=asked["ask_models"],
        )
        answer = {
            "version": done.version.number,
            "deployment": done.deployment.pk,
            "found": done.found,
            "read": done.read,
            "before": done.before,
            "after": done.after,
            "changes": [_change(one) for one in done.changes],
            "untried": done.untried,
            "skipped": list(done.skipped),
        }
        return uncached(DryRunAnswer(answer).data)


def _change(one: Change) -> dict[str, Any]:
    known = one.recorded
    placed = {"trigger": known.trigger, "place": known.place, "seq": known.seq, "at": known.at}
    return {**placed, "before": one.before, "after": one.after}
