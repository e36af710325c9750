"""REST API for owners to publish, compare, share and roll back releases of a deployment."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.releases import queries, rules, services
from apps.releases.enums import SimulationRule
from apps.releases.snapshots import take
from apps.tenants.api_auth import OwnersView, RequestSerializer, validated
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope

_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_INVALID: dict[int, Any] = {400: OpenApiResponse(description="`invalid`: a field is wrong")}


class ReleaseAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    status = serializers.CharField(help_text="`live`, `retired` or `withdrawn` (rolled back)")
    share = serializers.IntegerField(help_text="Percent of new conversations")
    sha256 = serializers.CharField(help_text="Of the snapshot as canonical JSON")
    note = serializers.CharField()
    restores = serializers.IntegerField(allow_null=True, help_text="The release whose settings were published again")
    simulation = serializers.CharField(help_text="When it was published: `passed`, `failed` or `missing`")
    override_reason = serializers.CharField()
    created_by = serializers.CharField()
    published_at = serializers.DateTimeField()


class ReleaseDetail(ReleaseAnswer):
    snapshot = serializers.DictField(help_text="`served` is what conversations read, `recorded` what the company had")


class ReleaseList(serializers.Serializer[Any]):
    releases = ReleaseAnswer(many=True)
    working_copy = serializers.CharField(help_text="Hash of the snapshot that would be published now")
    simulations = serializers.ChoiceField(choices=SimulationRule.choices, help_text="The company's rule")


class ReleaseChange(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


class ReleaseDiffAnswer(serializers.Serializer[Any]):
    changes = ReleaseChange(many=True)


class ReleasePublishRequest(RequestSerializer):
    sha256 = serializers.RegexField(
        r"^[0-9a-f]{64}$", required=False, help_text="Publish only if the working copy still has this hash"
    )
    share = serializers.IntegerField(min_value=1, max_value=100, default=100)
    note = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    override_reason = serializers.CharField(
        max_length=300, required=False, default="", help_text="Why no passed simulation is needed"
    )


class ReleaseShareRequest(RequestSerializer):
    share = serializers.IntegerField(min_value=0, max_value=100)


class ReleaseRollBackRequest(RequestSerializer):
    newest = serializers.IntegerField(min_value=1, help_text="The newest release that you saw")


class ReleaseRuleRequest(RequestSerializer):
    simulations = serializers.ChoiceField(choices=SimulationRule.choices)


class Releases(OwnersView):
    """Releases of a deployment, newest first; publish the working copy as the next one."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(operation_id="releases_list", tags=["releases"], responses={200: ReleaseList, **_REFUSALS})
    def get(self, request: Request, deployment_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            answer = {
                "releases": list(queries.releases_of(deployment.pk)),
                "working_copy": take(deployment).sha256,
                "simulations": queries.simulation_rule(),
            }
            return Response(ReleaseList(answer).data)

    @extend_schema(
        operation_id="releases_publish",
        tags=["releases"],
        request=ReleasePublishRequest,
        responses={
            201: ReleaseAnswer,
            **_INVALID,
            **_REFUSALS,
            409: OpenApiResponse(description="`release_changed`, `release_unchanged` or `simulation_required`"),
            422: OpenApiResponse(description="`invalid_share`: a first release gets all conversations"),
        },
    )
    def post(self, request: Request, deployment_id: UUID) -> Response:
        fields = validated(ReleasePublishRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            release = services.publish(deployment_by_id(deployment_id), actor=self.caller.actor, **fields)
            return Response(ReleaseAnswer(release).data, status=201)


class OneRelease(OwnersView):
    """A release with its snapshot."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(operation_id="releases_read", tags=["releases"], responses={200: ReleaseDetail, **_REFUSALS})
    def get(self, request: Request, deployment_id: UUID, number: int) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(ReleaseDetail(queries.release_by_number(deployment_by_id(deployment_id).pk, number)).data)


class ReleaseDiff(OwnersView):
    """How a release differs from another one, or from the working copy."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="releases_diff",
        tags=["releases"],
        parameters=[OpenApiParameter("with", int, description="The other release; without it, the working copy")],
        responses={200: ReleaseDiffAnswer, **_INVALID, **_REFUSALS},
    )
    def get(self, request: Request, deployment_id: UUID, number: int) -> Response:
        other = serializers.IntegerField(min_value=1, allow_null=True).run_validation(request.GET.get("with"))
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            before = queries.release_by_number(deployment.pk, number).read_snapshot()
            after = queries.release_by_number(deployment.pk, other).read_snapshot() if other else take(deployment)
            return Response(ReleaseDiffAnswer({"changes": rules.differences(before, after)}).data)


class ReleaseShare(OwnersView):
    """Change the share of a live release; the other live one gets the rest."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="releases_share",
        tags=["releases"],
        request=ReleaseShareRequest,
        responses={
            200: ReleaseAnswer,
            **_INVALID,
            **_REFUSALS,
            409: OpenApiResponse(description="`release_not_live`"),
            422: OpenApiResponse(description="`invalid_share`: the only live release keeps all conversations"),
        },
    )
    def post(self, request: Request, deployment_id: UUID, number: int) -> Response:
        fields = validated(ReleaseShareRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            release = services.change_share(
                deployment_by_id(deployment_id), number, share=fields["share"], actor=self.caller.actor
            )
            return Response(ReleaseAnswer(release).data)


class ReleaseRollBack(OwnersView):
    """Publish the settings of this release again, for all conversations."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="releases_roll_back",
        tags=["releases"],
        request=ReleaseRollBackRequest,
        responses={
            201: ReleaseAnswer,
            400: OpenApiResponse(description="`invalid`, or `invalid_deployment`: a model no longer exists"),
            **_REFUSALS,
            409: OpenApiResponse(description="`release_changed`: there is a newer release"),
        },
    )
    def post(self, request: Request, deployment_id: UUID, number: int) -> Response:
        fields = validated(ReleaseRollBackRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            release = services.roll_back(
                deployment_by_id(deployment_id), number, newest=fields["newest"], actor=self.caller.actor
            )
            return Response(ReleaseAnswer(release).data, status=201)


class ReleaseRule(OwnersView):
    """Whether publishing asks for a passed simulation, for all chatbots of the company."""

    reading, writing = KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE

    @extend_schema(
        operation_id="releases_rule",
        tags=["releases"],
        request=ReleaseRuleRequest,
        responses={200: ReleaseRuleRequest, **_INVALID, 401: _REFUSALS[401], 403: _REFUSALS[403]},
    )
    def put(self, request: Request) -> Response:
        fields = validated(ReleaseRuleRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            services.set_simulation_rule(SimulationRule(fields["simulations"]), actor=self.caller.actor)
            return Response({"simulations": queries.simulation_rule()})
