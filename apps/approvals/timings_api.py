"""REST API of how long cards wait for a decision, for owners and credentials with the scopes `settings:*`."""

from __future__ import annotations

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals import timings
from apps.approvals.enums import Pace
from apps.approvals.models.cards import LONGEST, SHORTEST
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    OwnersView,
    RequestSerializer,
    require_unchanged,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope


def _seconds(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(
        required=False, allow_null=True, min_value=SHORTEST, max_value=LONGEST, help_text=help_text
    )


class CardTimingSeconds(serializers.Serializer[object]):
    """Seconds after which an undecided card counts as declined."""

    gate = _seconds("While a visitor waits for the answer to a question of a gate")
    plan = _seconds("While an action waits that a visitor or a colleague asked for")
    calm = _seconds("While nothing waits: suggestions, drafts and questions about skills")


class CardTimingsRequest(CardTimingSeconds, RequestSerializer):
    pass


class CardTimingsAnswer(CardTimingSeconds):
    inherited = CardTimingSeconds(help_text="What holds where a field is null")


class _CardTimings(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    def _read(self, deployment_id: UUID | None) -> Response:
        with tenant_scope(self.caller.tenant_id):
            if deployment_id is not None:
                deployment_by_id(deployment_id)
            return self._answer(deployment_id)

    def _edit(self, request: Request, deployment_id: UUID | None) -> Response:
        changes = validated(CardTimingsRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, timings.card_timings(deployment_id, lock=True))
            seconds = {Pace(name): value for name, value in changes.items()}
            timings.change_card_timings(seconds, deployment_id=deployment_id, actor=self.caller.actor)
            return self._answer(deployment_id)

    def _answer(self, deployment_id: UUID | None) -> Response:
        own = timings.card_timings(deployment_id)
        return with_etag({**own, "inherited": timings.inherited_timings(deployment_id)}, of=own)


class CardTimings(_CardTimings):
    @extend_schema(
        operation_id="card_timings_get", tags=["cards"], responses={200: CardTimingsAnswer, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """Read how long the company's cards wait for a decision."""
        return self._read(None)

    @extend_schema(
        operation_id="card_timings_edit",
        tags=["cards"],
        request=CardTimingsRequest,
        parameters=[IF_MATCH],
        responses={200: CardTimingsAnswer, 400: RESOURCE_REFUSALS[400], **OWNERS_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request) -> Response:
        """Change how long new cards wait; what is left out stays, null uses the installation's time."""
        return self._edit(request, None)


class DeploymentCardTimings(_CardTimings):
    @extend_schema(
        operation_id="deployment_card_timings_get",
        tags=["cards"],
        responses={200: CardTimingsAnswer, **OWNERS_REFUSALS, 404: RESOURCE_REFUSALS[404]},
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """Read how long the cards of one chatbot wait for a decision."""
        return self._read(deployment_id)

    @extend_schema(
        operation_id="deployment_card_timings_edit",
        tags=["cards"],
        request=CardTimingsRequest,
        parameters=[IF_MATCH],
        responses={200: CardTimingsAnswer, **RESOURCE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request, deployment_id: UUID) -> Response:
        """Change how long new cards of this chatbot wait; what is left out stays, null uses the company's time."""
        return self._edit(request, deployment_id)
