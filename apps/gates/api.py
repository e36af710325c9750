"""REST API for owners to list gates with their versions, and to write and activate versions.

The dry run of a version is in `backtest.api`. Each answer is made inside one scope; every change is a service of
`services.versions`.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from pydantic import ValidationError as SpecError
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.gates import differences, queries, services
from apps.gates.models import Gate, GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.services.versions import LONGEST_NOTE
from apps.tenants.api_auth import OwnersView, RequestSerializer, uncached, validated
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_NAME = r"^[A-Za-z0-9_.-]{1,80}$"
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_INVALID = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    422: OpenApiResponse(
        description="`gate_invalid`: what is said is no gate that could work; `extra.fields` says why"
    ),
    409: OpenApiResponse(description="`gate_changed`: somebody wrote a newer version; `extra.newest` is its number"),
}


class VersionAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    order = serializers.IntegerField()
    content = serializers.DictField(help_text="Everything the gate says but its name")
    restores = serializers.IntegerField(allow_null=True, help_text="The version whose content this one brought back")
    written_by = serializers.CharField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class GateAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    deployment = serializers.UUIDField(source="deployment_id", allow_null=True, help_text="Null: all deployments")
    status = serializers.CharField()
    active = serializers.IntegerField(allow_null=True, help_text="The version in force")
    newest = serializers.IntegerField()


class GateWithVersions(GateAnswer):
    versions = VersionAnswer(many=True)


class VersionRequest(RequestSerializer):
    content = serializers.DictField(help_text="Everything the gate says but its name")
    order = serializers.IntegerField(default=100, min_value=0, max_value=32_767)
    note = serializers.CharField(max_length=LONGEST_NOTE, default="", allow_blank=True)
    seen = serializers.IntegerField(required=False, min_value=0, help_text="The newest version you have seen")


class GateRequest(VersionRequest):
    name = serializers.RegexField(_NAME)
    deployment = serializers.UUIDField(required=False, allow_null=True, help_text="Null: all deployments")


class MoveRequest(RequestSerializer):
    version = serializers.IntegerField(min_value=1)
    note = serializers.CharField(max_length=LONGEST_NOTE, default="", allow_blank=True)


class DiffRequest(RequestSerializer):
    before = serializers.IntegerField(min_value=1)
    after = serializers.IntegerField(min_value=1)


class DifferenceAnswer(serializers.Serializer[Any]):
    field = serializers.CharField()
    title = serializers.CharField(source="label")
    before = serializers.CharField()
    after = serializers.CharField()


class Gates(OwnersView):
    """All gates of the tenant, and new ones, which begin as drafts."""

    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    @extend_schema(operation_id="gates_list", tags=["gates"], responses={200: GateAnswer(many=True), **_REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached([GateAnswer(gate).data for gate in queries.all_gates()])

    @extend_schema(
        operation_id="gates_create",
        tags=["gates"],
        request=GateRequest,
        responses={201: GateWithVersions, **_REFUSALS, **_INVALID},
    )
    def post(self, request: Request) -> Response:
        asked = validated(GateRequest, request.data)
        spec = _spec(asked["name"], asked["content"])
        with tenant_scope(self.caller.tenant_id):
            deployment_id = _own_deployment(asked.get("deployment"))
            version = services.write_version(
                spec,
                deployment_id=deployment_id,
                order=asked["order"],
                actor=self.caller.actor,
                note=asked["note"],
                seen=0,
            )
            return uncached(_whole(version.gate), status.HTTP_201_CREATED)


class OneGate(OwnersView):
    """One gate with all its versions, newest first."""

    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    @extend_schema(operation_id="gates_read", tags=["gates"], responses={200: GateWithVersions, **_REFUSALS})
    def get(self, request: Request, gate_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(_whole(queries.gate_by_id(gate_id)))


class Versions(OwnersView):
    """Another version of a gate; nothing of it is in force yet."""

    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    @extend_schema(
        operation_id="gates_write_version",
        tags=["gates"],
        request=VersionRequest,
        responses={201: VersionAnswer, **_REFUSALS, **_INVALID},
    )
    def post(self, request: Request, gate_id: UUID) -> Response:
        asked = validated(VersionRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            gate = queries.gate_by_id(gate_id)
            version = services.write_version(
                _spec(gate.name, asked["content"]),
                deployment_id=gate.deployment_id,
                order=asked["order"],
                actor=self.caller.actor,
                note=asked["note"],
                seen=asked.get("seen"),
            )
            return uncached(VersionAnswer(version).data, status.HTTP_201_CREATED)


class Diff(OwnersView):
    """What two versions of a gate say differently, field by field."""

    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    @extend_schema(
        operation_id="gates_diff",
        tags=["gates"],
        parameters=[DiffRequest],
        responses={200: DifferenceAnswer(many=True), **_REFUSALS, 400: _INVALID[400]},
    )
    def get(self, request: Request, gate_id: UUID) -> Response:
        asked = validated(DiffRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            gate = queries.gate_by_id(gate_id)
            old, new = (queries.version_of(gate, asked[name]) for name in ("before", "after"))
            found = differences.differences(old.content, new.content, old_order=old.order, new_order=new.order)
        return uncached([DifferenceAnswer(one).data for one in found])


class _Move(OwnersView):
    reading, writing = KeyScope.GATES_READ, KeyScope.GATES_WRITE

    def _gate(self, gate_id: UUID) -> Response:
        return uncached(GateAnswer(queries.gate_by_id(gate_id)).data)


class Activation(_Move):
    """Bring one version into force, from the next turn on."""

    @extend_schema(
        operation_id="gates_activate",
        tags=["gates"],
        request=MoveRequest,
        responses={200: GateAnswer, **_REFUSALS, **_INVALID},
    )
    def post(self, request: Request, gate_id: UUID) -> Response:
        asked = validated(MoveRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            services.activate(gate_id, asked["version"], actor=self.caller.actor)
            return self._gate(gate_id)


class RollBack(_Move):
    """Bring the content of an earlier version back into force, as a new version."""

    @extend_schema(
        operation_id="gates_roll_back",
        tags=["gates"],
        request=MoveRequest,
        responses={200: GateAnswer, **_REFUSALS, **_INVALID},
    )
    def post(self, request: Request, gate_id: UUID) -> Response:
        asked = validated(MoveRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            services.roll_back(gate_id, asked["version"], actor=self.caller.actor, note=asked["note"])
            return self._gate(gate_id)


class Retirement(_Move):
    """Take a gate out of force, from the next turn on; its versions stay."""

    @extend_schema(operation_id="gates_retire", tags=["gates"], request=None, responses={200: GateAnswer, **_REFUSALS})
    def post(self, request: Request, gate_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.retire(gate_id, actor=self.caller.actor)
            return self._gate(gate_id)


def _whole(gate: Gate) -> dict[str, Any]:
    versions: list[GateVersion] = queries.versions_of(gate)
    return {**GateAnswer(gate).data, "versions": [VersionAnswer(version).data for version in versions]}


def _own_deployment(deployment_id: UUID | None) -> UUID | None:
    return None if deployment_id is None else deployment_by_id(deployment_id).pk


def _spec(name: str, content: dict[str, Any]) -> GateSpec:
    """Raises 422 `gate_invalid` with what is wrong by field."""
    try:
        return GateSpec(**{**content, "name": name})
    except (SpecError, TypeError) as wrong:
        found = wrong.errors() if isinstance(wrong, SpecError) else []
        fields = {".".join(map(str, each["loc"])) or "gate": str(each["msg"])[:200] for each in found}
        raise SilasError(
            ErrorCode.GATE_INVALID, gettext("This isn't a valid gate."), extra={"fields": fields}
        ) from wrong
