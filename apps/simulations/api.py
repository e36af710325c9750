"""REST API of simulations: suites and their scenarios, runs of them, what came of each conversation, and what changed
since the run before. For owners and their API keys.

A run is queued; `status` says how far it is. Everything simulated happens in an isolated copy (ADR 120).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.releases.snapshots import take
from apps.simulations import makers, queries, services
from apps.simulations.enums import Ending, Origin, Outcome, Player, Reviewer, RunStatus
from apps.simulations.models import SimulationRun, SimulationSuite
from apps.simulations.release_judge import overrides_of
from apps.simulations.reports import Difference
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.api_auth import OwnersView, PageRequest, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope

MOST_LISTED = 40
_ENDINGS = ", ".join(f"`{ending}`" for ending in Ending.values)


def _money(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=12, decimal_places=6, normalize_output=True, **options)


class SimulationSuitesRequest(PageRequest):
    deployment = serializers.UUIDField(required=False)


class SimulationSuiteRequest(RequestSerializer):
    deployment = serializers.UUIDField()
    name = serializers.CharField(max_length=80, required=False, help_text="Of a suite whose scenarios you write")
    origin = serializers.ChoiceField(
        choices=[origin.value for origin in makers.SOURCES],
        required=False,
        help_text="What the scenarios are made from; those of the same name are written anew",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("name" in attrs) is ("origin" in attrs):
            raise serializers.ValidationError(gettext("Give either a name or an origin."))
        return attrs


class ScenarioRequest(RequestSerializer):
    name = serializers.CharField(max_length=160)
    player = serializers.ChoiceField(choices=Player.choices, default=Player.SCRIPT)
    persona = serializers.CharField(max_length=4000, default="", allow_blank=True, help_text="Who the visitor is")
    goal = serializers.CharField(max_length=4000, default="", allow_blank=True, help_text="What the visitor wants")
    secrets = serializers.CharField(
        max_length=4000, default="", allow_blank=True, help_text="What only the visitor knows; told when asked for"
    )
    model = serializers.CharField(
        max_length=120, default="", allow_blank=True, help_text="Plays the visitor; empty for the planner's model"
    )
    most_turns = serializers.IntegerField(min_value=1, max_value=MOST_LISTED, default=6)
    reviewer = serializers.ChoiceField(choices=Reviewer.choices, default=Reviewer.NONE)
    lines = serializers.ListField(
        child=serializers.DictField(),
        default=list,
        max_length=MOST_LISTED,
        help_text='What the visitor writes: `{"say": …}`, and what each answer is expected to be',
    )
    checks = serializers.ListField(
        child=serializers.DictField(),
        default=list,
        max_length=MOST_LISTED,
        help_text='What must be true afterwards, such as `{"kind": "says", "words": ["14 days"]}`',
    )


class ScenarioAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    player = serializers.ChoiceField(choices=Player.choices)
    persona = serializers.CharField()
    goal = serializers.CharField()
    secrets = serializers.CharField()
    model = serializers.CharField()
    most_turns = serializers.IntegerField()
    reviewer = serializers.ChoiceField(choices=Reviewer.choices)
    lines = serializers.ListField(child=serializers.DictField())
    checks = serializers.ListField(child=serializers.DictField())
    origin = serializers.ChoiceField(choices=Origin.choices)
    created_at = serializers.DateTimeField()


class SimulationSuiteAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    deployment_id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class SimulationSuiteDetail(SimulationSuiteAnswer):
    scenarios = ScenarioAnswer(many=True, source="scenarios.all", help_text="In the order in which they are played")


class SimulationSuitesAnswer(serializers.Serializer[Any]):
    suites = SimulationSuiteAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class SimulationsRequest(PageRequest):
    deployment = serializers.UUIDField(required=False)
    suite = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(choices=RunStatus.choices, required=False)


class SimulationRequest(RequestSerializer):
    suite = serializers.UUIDField()
    budget_usd = _money(required=False, min_value=0, help_text="No scenario begins once this is spent")
    only = serializers.CharField(
        max_length=160, default="", allow_blank=True, help_text="Only scenarios whose name contains this"
    )
    release = serializers.RegexField(
        r"^[0-9a-f]{64}\Z",
        required=False,
        help_text="Simulate the working copy that would be published, if it still has this hash",
    )


class SimulationAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    deployment_id = serializers.UUIDField()
    suite_id = serializers.UUIDField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    reason = serializers.CharField(help_text="Why it ended as it did; empty where there is nothing to say")
    passed = serializers.BooleanField(allow_null=True, help_text="Null until it has ended")
    release = serializers.CharField(source="snapshot", help_text="Hash of the working copy simulated, or empty")
    budget_usd = _money(allow_null=True)
    compared_with_id = serializers.UUIDField(allow_null=True)
    by = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class SimulationResultAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    failures = serializers.ListField(child=serializers.CharField())
    conversation = serializers.ListField(child=serializers.DictField(), help_text="What was said, and what came of it")
    player = serializers.CharField(help_text="The model that played the visitor; empty for a script")
    ending = serializers.CharField(help_text=f"Why that model stopped: {_ENDINGS}, or empty")
    cost_usd = _money()
    finished_at = serializers.DateTimeField(allow_null=True)


class SimulationDifferenceAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    change = serializers.ChoiceField(choices=[change.name.lower() for change in Difference])


class SimulationDetail(SimulationAnswer):
    lacks = serializers.ListField(child=serializers.CharField(), help_text="What the isolated copy could not take over")
    cost_usd = _money()
    results = SimulationResultAnswer(many=True, source="played")
    differences = SimulationDifferenceAnswer(many=True, help_text="Since the run that it is compared with")


class SimulationsAnswer(serializers.Serializer[Any]):
    simulations = SimulationAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class SimulationSuites(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulation_suites_list",
        tags=["simulations"],
        parameters=[SimulationSuitesRequest],
        responses={200: SimulationSuitesAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List suites, newest first."""
        values = validated(SimulationSuitesRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = SimulationSuite.objects.all()
            if "deployment" in values:
                rows = rows.filter(deployment=deployment_by_id(values["deployment"]))
            suites, following = read_page(rows, before=values["before"], limit=values["limit"])
            return uncached(SimulationSuitesAnswer({"suites": suites, "next": following}).data)

    @extend_schema(
        operation_id="simulation_suites_create",
        tags=["simulations"],
        request=SimulationSuiteRequest,
        responses={
            201: SimulationSuiteDetail,
            **_REFUSALS,
            409: OpenApiResponse(description="`simulation_empty`: there is nothing to make scenarios from"),
        },
    )
    def post(self, request: Request) -> Response:
        """Create the deployment's suite of this name, or make one from what the company has. One that exists stays."""
        values = validated(SimulationSuiteRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(values["deployment"])
            if "origin" in values:
                suite = makers.make_suite(deployment, Origin(values["origin"]))
            else:
                suite = services.save_suite(deployment, values["name"])
            return uncached(SimulationSuiteDetail(suite).data, status.HTTP_201_CREATED)


class OneSimulationSuite(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulation_suites_get",
        tags=["simulations"],
        responses={200: SimulationSuiteDetail, **_REFUSALS},
    )
    def get(self, request: Request, suite_id: UUID) -> Response:
        """Read a suite with its scenarios."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(SimulationSuiteDetail(queries.suite(suite_id)).data)


class Scenarios(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulation_scenarios_save",
        tags=["simulations"],
        request=ScenarioRequest,
        responses={
            200: ScenarioAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`too_many_scenarios`"),
            422: OpenApiResponse(description="`invalid_scenario`: `extra.problems` lists what is wrong"),
        },
    )
    def post(self, request: Request, suite_id: UUID) -> Response:
        """Add a scenario to the suite; one of the same name is replaced."""
        values = validated(ScenarioRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            scenario = services.save_scenario(queries.suite(suite_id), **values)
            return uncached(ScenarioAnswer(scenario).data)


class Simulations(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulations_list",
        tags=["simulations"],
        parameters=[SimulationsRequest],
        responses={200: SimulationsAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List runs, newest first."""
        values = validated(SimulationsRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        with tenant_scope(self.caller.tenant_id):
            if "deployment" in values:
                values["deployment"] = deployment_by_id(values["deployment"])
            if "suite" in values:
                values["suite"] = queries.suite(values["suite"])
            rows, following = read_page(SimulationRun.objects.filter(**values), before=before, limit=limit)
            return uncached(SimulationsAnswer({"simulations": rows, "next": following}).data)

    @extend_schema(
        operation_id="simulations_start",
        tags=["simulations"],
        request=SimulationRequest,
        responses={
            201: SimulationAnswer,
            **_REFUSALS,
            409: OpenApiResponse(
                description="`simulation_empty`: no scenario to play; `release_changed`: the working copy has changed"
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Start a run of a suite against its deployment as it is, or against the release that would be published."""
        values = validated(SimulationRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            suite = queries.suite(values["suite"])
            draft: dict[str, Any] = {}
            if wanted := values.get("release"):
                snapshot = take(suite.deployment)
                if snapshot.sha256 != wanted:
                    raise SilasError(ErrorCode.RELEASE_CHANGED)
                draft = {"overrides": overrides_of(snapshot), "snapshot": snapshot.sha256}
            run = services.run_simulation(
                suite.deployment,
                suite,
                budget_usd=values.get("budget_usd"),
                only=values["only"],
                by=self.caller.actor,
                **draft,
            )
            return uncached(SimulationAnswer(run).data, status.HTTP_201_CREATED)


class OneSimulation(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(operation_id="simulations_get", tags=["simulations"], responses={200: SimulationDetail, **_REFUSALS})
    def get(self, request: Request, run_id: UUID) -> Response:
        """Read a run with its results, and what came out otherwise than in the run before."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(_detail(run_id))


class StopSimulation(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulations_stop",
        tags=["simulations"],
        request=None,
        responses={
            200: SimulationDetail,
            **_REFUSALS,
            409: OpenApiResponse(description="`simulation_ended`"),
        },
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Stop a run; scenarios that are being played end as they are."""
        with tenant_scope(self.caller.tenant_id):
            services.stop(run_id, by=self.caller.actor)
            return uncached(_detail(run_id))


class ResumeSimulation(OwnersView):
    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="simulations_resume",
        tags=["simulations"],
        request=None,
        responses={
            200: SimulationDetail,
            **_REFUSALS,
            409: OpenApiResponse(description="`simulation_empty`: nothing was left out, or it did not break off"),
        },
    )
    def post(self, request: Request, run_id: UUID) -> Response:
        """Play what a run that was stopped or failed has left out; the other results stay."""
        with tenant_scope(self.caller.tenant_id):
            services.resume(run_id, by=self.caller.actor)
            return uncached(_detail(run_id))


def _detail(run_id: UUID) -> Any:
    run = queries.run(run_id)
    run.__dict__.update(
        played=list(run.results.order_by("place")),
        cost_usd=queries.cost_of(run),
        differences=[{"name": name, "change": change.name.lower()} for change, name in queries.differences_of(run)],
    )
    return SimulationDetail(run).data
