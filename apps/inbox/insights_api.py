"""REST API of insights: the numbers of the insights page, for members and API keys without scopes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals.enums import Risk
from apps.inbox.enums import SlaTarget
from apps.inbox.insights import Period, figures_of, is_readable, today_in
from apps.tenants.api_auth import MembersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from apps.tenants.models import Tenant
from apps.tenants.queries import deployment_by_id
from kernel.clock import now
from kernel.language import gettext
from kernel.tenancy import tenant_scope
from kernel.timezones import first_known_timezone

USUAL_DAYS = 7


class InsightsRequest(RequestSerializer):
    first = serializers.DateField(required=False, help_text="The first day; without it a week that ends with `last`")
    last = serializers.DateField(required=False, help_text="The last day, today at most; without it today")
    deployment = serializers.UUIDField(required=False, help_text="Of all deployments without it")


class ConversationDay(serializers.Serializer[object]):
    day = serializers.DateField()
    conversations = serializers.IntegerField()
    messages = serializers.IntegerField()
    with_person = serializers.IntegerField()


class MessageFigures(serializers.Serializer[object]):
    total = serializers.IntegerField()
    answered = serializers.IntegerField()
    cited = serializers.IntegerField(help_text="Answers that cite a source")
    refused = serializers.IntegerField(help_text="Blocked by gates")
    suppressed = serializers.IntegerField(help_text="Answers discarded because a person took over")
    stopped = serializers.IntegerField()
    failed = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True, help_text="Seconds to an answer")
    p95 = serializers.FloatField(allow_null=True)


class HandoverFigures(serializers.Serializer[object]):
    reason = serializers.CharField(source="because")
    wanted = serializers.IntegerField()
    answered = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True, help_text="Seconds until a person answered")


class GateFigures(serializers.Serializer[object]):
    gate = serializers.CharField()
    blocked = serializers.IntegerField()
    asked = serializers.IntegerField()
    rewrote = serializers.IntegerField()


class RatingsAnswer(serializers.Serializer[object]):
    count = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True)
    by_score = serializers.DictField(child=serializers.IntegerField())
    comments = serializers.IntegerField()


class SlaFiguresAnswer(serializers.Serializer[object]):
    target = serializers.ChoiceField(choices=SlaTarget.choices)
    met = serializers.IntegerField()
    missed = serializers.IntegerField()


class ConversationsAnswer(serializers.Serializer[object]):
    conversations = serializers.IntegerField()
    messages = serializers.IntegerField()
    with_person = serializers.IntegerField(help_text="Handed over to a person")
    resolved_by_bot = serializers.FloatField(allow_null=True, help_text="A share from 0 to 1")
    daily = ConversationDay(many=True)
    turns = MessageFigures(help_text="What became of the messages")
    handovers = HandoverFigures(many=True, source="hand_offs")
    gates = GateFigures(many=True)
    ratings = RatingsAnswer()
    sla = SlaFiguresAnswer(many=True, help_text="Of the clocks of SLA policies that started in the period")


class DecisionTotals(serializers.Serializer[object]):
    decisions = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True, help_text="Seconds")
    declined = serializers.FloatField(allow_null=True, help_text="A share from 0 to 1, as the next four")
    undone = serializers.FloatField(allow_null=True)
    corrected = serializers.FloatField(allow_null=True)
    freetext = serializers.FloatField(allow_null=True)
    expired = serializers.IntegerField()
    withdrawn = serializers.IntegerField()
    taps_per_batch = serializers.FloatField(allow_null=True)
    fatigue_triggers = serializers.IntegerField()


class DecisionDay(serializers.Serializer[object]):
    day = serializers.DateField()
    decided = serializers.IntegerField()
    declined = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True)


class DecisionsByRisk(serializers.Serializer[object]):
    risk = serializers.ChoiceField(choices=Risk.choices)
    decisions = serializers.IntegerField()
    median = serializers.FloatField(allow_null=True)
    approved = serializers.FloatField(allow_null=True, help_text="A share from 0 to 1")


class DecisionsByAction(serializers.Serializer[object]):
    action = serializers.CharField(source="name")
    total = serializers.IntegerField()
    edits = serializers.IntegerField()
    declines = serializers.IntegerField()
    undos = serializers.IntegerField()


class DecisionsAnswer(serializers.Serializer[object]):
    totals = DecisionTotals()
    daily = DecisionDay(many=True)
    by_risk = DecisionsByRisk(many=True)
    by_action = DecisionsByAction(many=True)
    times = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="How many took under 1 second, 1 to 5, 5 to 15, 15 to 30, and longer",
    )


class InsightsAnswer(serializers.Serializer[object]):
    first = serializers.DateField()
    last = serializers.DateField()
    timezone = serializers.CharField(help_text="In which days begin")
    conversations = ConversationsAnswer()
    decisions = DecisionsAnswer()


class Insights(MembersView):
    reading, writing = KeyScope.INSIGHTS_READ, KeyScope.INSIGHTS_READ

    @extend_schema(
        operation_id="insights_get",
        tags=["insights"],
        parameters=[InsightsRequest],
        responses={
            200: InsightsAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong, or the period longer than 366 days"),
            401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
            403: OpenApiResponse(description="`forbidden_role`: not a member; `forbidden_scope`: the key has scopes"),
            404: OpenApiResponse(description="`not_found`: the deployment is unknown or foreign"),
        },
    )
    def get(self, request: Request) -> Response:
        """Figures about conversations and decisions of a period."""
        values = validated(InsightsRequest, request.query_params)
        zone = first_known_timezone(Tenant.objects.get(pk=self.caller.tenant_id).timezone)
        with tenant_scope(self.caller.tenant_id):
            place = deployment_by_id(values["deployment"]) if "deployment" in values else None
            period = _period(values, zone, place)
            figures, decisions = figures_of(period)
            answer = {
                "first": period.first,
                "last": period.last,
                "timezone": zone,
                "conversations": figures,
                "decisions": decisions,
            }
            return uncached(InsightsAnswer(answer).data)


def _period(values: dict[str, Any], zone: str, place: Any) -> Period:
    """Raises 400 `invalid` for a period that cannot be read."""
    moment = now()
    today = today_in(zone, moment)
    last = min(values.get("last", today), today)
    first = values.get("first") or last - timedelta(days=min(USUAL_DAYS - 1, last.toordinal() - 1))
    if not is_readable(first, last):
        raise serializers.ValidationError({"first": [gettext("Use a period of up to 366 days since the year 2000.")]})
    return Period(first, last, zone, moment, place)
