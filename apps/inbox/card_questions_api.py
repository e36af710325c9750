"""REST API of questions to the customer about a card."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals import queries
from apps.approvals.api import CardDetail, card_detail
from apps.inbox.api import StaffView
from apps.inbox.card_questions import ask_customer
from apps.inbox.handoff import MAX_REPLY
from apps.tenants.api_auth import RESOURCE_REFUSALS, RequestSerializer, require_scope, uncached, validated
from apps.tenants.enums import Capability, KeyScope
from kernel.tenancy import tenant_scope


class CardQuestionRequest(RequestSerializer):
    text = serializers.CharField(max_length=MAX_REPLY, help_text="What the customer reads")
    hours = serializers.IntegerField(
        default=24, min_value=1, max_value=24, required=False, help_text="How long the card waits for the answer"
    )


class CardQuestion(StaffView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_ask",
        tags=["cards"],
        request=CardQuestionRequest,
        responses={
            201: CardDetail,
            **RESOURCE_REFUSALS,
            400: OpenApiResponse(description="`invalid`: a field is wrong; `invalid_text`: nothing to read"),
            409: OpenApiResponse(
                description="`question_waiting`: the customer has not answered yet; `too_many_questions`;"
                " `card_takes_no_question`: it is about no conversation, or held back by a gate; `owned_by_other`;"
                " `card_decided`, `card_expired`, `card_withdrawn`"
            ),
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Ask the customer something in the card's conversation. The card waits for the answer outside of the queue,
        and its deadline moves by as much. A program needs the scope `sessions:write` as well."""
        values = validated(CardQuestionRequest, request.data)
        require_scope(self.caller, KeyScope.SESSIONS_WRITE)
        with tenant_scope(self.caller.tenant_id):
            ask_customer(card_id, self.staff, values["text"], wait=timedelta(hours=values["hours"]))
            return uncached(card_detail(queries.get_card(card_id)), status.HTTP_201_CREATED)
