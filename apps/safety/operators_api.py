"""REST API of the safety loop for operators: read the holds that wait for a person, read the policy with its versions,
and try another policy.

Programs are held by these rules, so that a person alone sets them and lifts what they hold, in the console.
"""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.safety import queries, services
from apps.safety.enums import Decision, HoldKind, HoldState, Mode, Stage, Tier, Tolerance
from apps.safety.models import Hold
from apps.safety.schemas import DEFAULT_STEPS
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.api_auth import OwnersView, PageRequest, RequestSerializer, ScopedView, uncached, validated
from apps.tenants.enums import Capability, KeyScope
from kernel.errors import NotFound
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope

MOST_PATTERNS, MOST_VERSIONS = 200, 50


class SafetyHoldsRequest(PageRequest):
    state = serializers.ChoiceField(choices=HoldState.choices, required=False)
    kind = serializers.ChoiceField(choices=HoldKind.choices, required=False)


class SafetyHoldAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    agent = serializers.CharField(source="agent.name", help_text="The name that the agent gives itself")
    principal = serializers.CharField(help_text="Whose credential it has")
    execution_id = serializers.UUIDField(allow_null=True)
    kind = serializers.ChoiceField(choices=HoldKind.choices)
    state = serializers.ChoiceField(choices=HoldState.choices)
    stage = serializers.ChoiceField(choices=Stage.choices)
    tier = serializers.ChoiceField(choices=Tier.choices)
    action = serializers.CharField(source="hint", help_text="What it intended, in its own words")
    reason = serializers.CharField()
    factors = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_by = serializers.CharField()


class SafetyHoldsAnswer(serializers.Serializer[object]):
    holds = SafetyHoldAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


def _patterns() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(max_length=500), default=list, max_length=MOST_PATTERNS)


class FixedScoreField(RequestSerializer):
    pattern = serializers.CharField(max_length=500)
    score = serializers.IntegerField(min_value=0, max_value=100)


class SafetyPolicyContent(RequestSerializer):
    mode = serializers.ChoiceField(choices=Mode.choices, default=Mode.ENFORCING)
    max_steps = serializers.IntegerField(default=DEFAULT_STEPS, min_value=0, max_value=10_000, help_text="0: no limit")
    step_window_seconds = serializers.IntegerField(default=3600, min_value=60, max_value=86_400)
    tolerance = serializers.ChoiceField(choices=Tolerance.choices, default=Tolerance.MODERATE)
    deny = _patterns()
    requires_approval = _patterns()
    auto_approve = _patterns()
    challenge_seconds = serializers.IntegerField(default=300, min_value=30, max_value=3600)
    scores = FixedScoreField(many=True, default=list)


class SafetyPrincipalRequest(RequestSerializer):
    principal = serializers.CharField(
        max_length=80, default="", allow_blank=True, help_text="Whose policy; empty for the general one"
    )


class SafetyBacktestRequest(SafetyPrincipalRequest):
    content = SafetyPolicyContent()


class SafetyPolicyVersionAnswer(serializers.Serializer[object]):
    number = serializers.IntegerField()
    taken_back = serializers.BooleanField(help_text="From this version on the general policy applies again")
    written_by = serializers.CharField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class SafetyPolicyAnswer(serializers.Serializer[object]):
    principal = serializers.CharField()
    active = SafetyPolicyContent(help_text="What applies now")
    versions = SafetyPolicyVersionAnswer(many=True, help_text=f"The newest {MOST_VERSIONS}, newest first")
    principals = serializers.ListField(child=serializers.CharField(), help_text="Who may have a policy of their own")


class SafetyDifferenceAnswer(serializers.Serializer[object]):
    action = serializers.CharField(source="step.hint")
    principal = serializers.CharField(source="step.agent.principal")
    before = serializers.ChoiceField(choices=Decision.choices, source="step.decision")
    after = serializers.ChoiceField(choices=Decision.choices, source="now")
    at = serializers.DateTimeField(source="step.created_at")


class SafetyBacktestAnswer(serializers.Serializer[object]):
    read = serializers.IntegerField(help_text="How many recorded steps were decided again")
    differences = SafetyDifferenceAnswer(many=True, source="differing")


class SafetyHolds(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="safety_holds_list",
        tags=["safety"],
        parameters=[SafetyHoldsRequest],
        responses={200: SafetyHoldsAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List holds, newest first. With the state `open`, those that wait for a person."""
        values = validated(SafetyHoldsRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        with tenant_scope(self.caller.tenant_id):
            rows = Hold.objects.filter(**values).select_related("agent")
            holds, following = read_page(rows, before=before, limit=limit)
            return uncached(SafetyHoldsAnswer({"holds": holds, "next": following}).data)


class SafetyPolicy(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="safety_policy_get",
        tags=["safety"],
        parameters=[SafetyPrincipalRequest],
        responses={200: SafetyPolicyAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """Read the policy, general or of one principal, with its versions."""
        principal = validated(SafetyPrincipalRequest, request.query_params)["principal"]
        with tenant_scope(self.caller.tenant_id):
            answer = {
                "principal": _known(principal),
                "active": queries.policy_of(principal).stored(),
                "versions": queries.versions_of(principal)[:MOST_VERSIONS],
                "principals": queries.principals(),
            }
            return uncached(SafetyPolicyAnswer(answer).data)


class SafetyPolicyBacktest(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="safety_policy_backtest",
        tags=["safety"],
        request=SafetyBacktestRequest,
        responses={200: SafetyBacktestAnswer, **_REFUSALS, 422: OpenApiResponse(description="`policy_invalid`")},
    )
    def post(self, request: Request) -> Response:
        """Decide recorded steps again with this policy; nothing is saved."""
        values = validated(SafetyBacktestRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            policy = services.validate_policy(values["content"])
            trial = services.backtest_policy(policy, principal=_known(values["principal"]))
            return uncached(SafetyBacktestAnswer(trial).data)


def _known(principal: str) -> str:
    """The principal, empty for the general policy. Raises `NotFound` for one that is unknown."""
    if principal and principal not in queries.principals():
        raise NotFound()
    return principal
