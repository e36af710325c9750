"""REST API of cards in the shape of Agent Inbox: the interrupt and the response to it (`HumanInterrupt` and
`HumanResponse` of LangChain's Agent Inbox).

A response is signed like any other decision of a program, with the same scope; `ignore` decides nothing.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals.api import OUTCOMES, DecisionOutcome, SignatureRequest, answer_signed
from apps.approvals.cards.schemas import ClientSignature
from apps.approvals.models import Card
from apps.approvals.queries import get_card
from apps.tenants.api_auth import (
    RESOURCE_REFUSALS,
    MembersView,
    RequestSerializer,
    ScopedView,
    api_key_caller,
    uncached,
    validated,
)
from apps.tenants.enums import Capability, KeyScope
from apps.work.services import interrupts
from apps.work.services.interrupts import Action
from kernel.language import gettext
from kernel.tenancy import tenant_scope

ACCEPT, EDIT, RESPONSE, IGNORE = "accept", "edit", "response", "ignore"
_SIGNATURE = tuple(SignatureRequest._declared_fields)


class ActionRequestAnswer(serializers.Serializer[object]):
    action = serializers.CharField(help_text="The tool of the card's only call, else the kind of card")
    args = serializers.DictField()


class InterruptConfig(serializers.Serializer[object]):
    allow_ignore = serializers.BooleanField()
    allow_respond = serializers.BooleanField()
    allow_edit = serializers.BooleanField()
    allow_accept = serializers.BooleanField()


class InterruptAnswer(serializers.Serializer[object]):
    action_request = ActionRequestAnswer()
    config = InterruptConfig(help_text="All false for a card that is no longer open")
    description = serializers.CharField()


class CardInterrupt(MembersView):
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_interrupt", tags=["cards"], responses={200: InterruptAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, card_id: UUID) -> Response:
        """Read a card as an Agent Inbox interrupt."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(InterruptAnswer(interrupts.interrupt_of(get_card(card_id))).data)


class ActionRequest(RequestSerializer):
    action = serializers.CharField(max_length=200)
    args = serializers.DictField()


class InterruptResponseRequest(SignatureRequest):
    type = serializers.ChoiceField(choices=(ACCEPT, EDIT, RESPONSE, IGNORE))
    args = serializers.JSONField(
        required=False,
        allow_null=True,
        help_text="For `edit` an object with `action` and `args`, for `response` a text, else null",
    )

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for name in _SIGNATURE:
            fields[name].required = False
        return fields

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        missing = [name for name in _SIGNATURE if name not in attrs]
        # To ignore a card decides nothing, so there is nothing to sign.
        if missing and attrs["type"] != IGNORE:
            raise serializers.ValidationError({name: [gettext("This field is required.")] for name in missing})
        match attrs["type"]:
            case "edit":
                attrs["args"] = validated(ActionRequest, attrs.get("args"))
            case "response" if not isinstance(attrs.get("args"), str):
                raise serializers.ValidationError({"args": [gettext("Send a text.")]})
        return attrs


class InterruptOutcome(DecisionOutcome):
    outcome = serializers.ChoiceField(choices=[*OUTCOMES, ("ignored", "Nothing was decided; the card stays as it is")])


class CardInterruptResponse(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_interrupt_respond",
        tags=["cards"],
        request=InterruptResponseRequest,
        responses={
            200: InterruptOutcome,
            **RESOURCE_REFUSALS,
            409: OpenApiResponse(
                description="As for a decision, and `choice_unknown` (not offered), `edit_unfit`, `edit_refused`"
            ),
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Answer a card with an Agent Inbox response, signed as a decision is. `ignore` takes no signature."""
        values = validated(InterruptResponseRequest, request.data)
        caller = api_key_caller(request, KeyScope.CARDS_DECIDE)
        if values["type"] == IGNORE:
            with tenant_scope(caller.tenant_id):
                card = get_card(card_id)
            return uncached(InterruptOutcome({"outcome": "ignored", "card_id": card.pk, "state": card.state}).data)

        def answer(card: Card, signature: ClientSignature) -> object:
            face = values["face_hash"]
            match values["type"]:
                case "accept":
                    return interrupts.accept(card, face=face, signature=signature)
                case "edit":
                    return interrupts.edit(card, Action(**values["args"]), face=face, signature=signature)
            return interrupts.respond(card, values["args"], face=face, signature=signature)

        return uncached(InterruptOutcome(answer_signed(caller, card_id, values, answer)).data)
