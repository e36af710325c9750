"""Put prompts to a visitor over HTTP, and receive their secrets and forms (contract interfaces; spec 8.1).

A tenant's own system or a member puts a prompt, reads its state and withdraws it; an owner or their system takes out,
once, what was given in secret. The visitor's browser posts a secret to `/secrets/<ref_id>` with its session token, from
our own origin. No value is answered, logged or kept but in its sealed row.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from pydantic import ValidationError as Unfit
from rest_framework import serializers, status
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.access import tokens
from apps.connections.api import store_for_connection
from apps.sessions.api import visitor_of
from apps.sessions.queries import session_by_id
from apps.tenants.api_auth import MembersView, OwnersView, RequestSerializer
from apps.tenants.enums import KeyScope
from apps.visitors import prompts, ratelimit
from apps.visitors.enums import AskKind
from apps.visitors.prompt_forms import FormWanted
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.ratelimit.addresses import address_of
from kernel.tenancy import tenant_scope

_KEPT_NOWHERE = {"Cache-Control": "no-store"}
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: this role asks no visitors"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_SETTLED = {409: OpenApiResponse(description="`card_decided`, `card_expired`, `card_withdrawn`: settled already")}


_SHAPES: dict[str, type[prompts.Question | prompts.SecretWanted | FormWanted]] = {
    AskKind.DECISION: prompts.Question,
    AskKind.SECURE_INPUT: prompts.SecretWanted,
    AskKind.FORM: FormWanted,
}


class AskRequest(RequestSerializer):
    kind = serializers.RegexField(r"^(decision|secure_input|form)$", help_text="`decision`, `secure_input` or `form`")
    question = serializers.CharField(max_length=500, required=False, help_text="`decision`, `form`: what is asked")
    rationale = serializers.CharField(max_length=500, required=False, allow_blank=True)
    options = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="`decision`: 1 to 8 of `{value, label}`"
    )
    allow_freetext = serializers.BooleanField(required=False)
    # Serializers know their own fields by this name; on the wire it is the form's.
    fields = serializers.ListField(  # type: ignore[assignment]  # hides the serializer's own attribute
        child=serializers.DictField(),
        required=False,
        help_text="`form`: 1 to 8 of `{name, label, kind, required, choices}`;"
        " kind is `text`, `email`, `number`, `choice` or `date`",
    )
    risk_level = serializers.ChoiceField(choices=["low", "medium", "high"], required=False)
    # A serializer has a label of its own, which is not this field.
    label = serializers.CharField(  # type: ignore[assignment]  # hides the serializer's own attribute
        max_length=120, required=False, help_text="`secure_input`: what is wanted"
    )
    input_hint = serializers.CharField(max_length=80, required=False, allow_blank=True)
    guidance = serializers.DictField(required=False, help_text="`secure_input`: `{instructions, help_url?}`")
    seconds = serializers.IntegerField(required=False, help_text="How long it waits; a day without it")


class CardAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    state = serializers.CharField(help_text="`open`, `answered`, `expired` or `withdrawn`")
    chosen = serializers.CharField(help_text="The value the visitor pressed; empty for words of their own")
    answers = serializers.DictField(
        child=serializers.CharField(), help_text="What was filled into a form, by the names of its fields"
    )
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    settled_at = serializers.DateTimeField(allow_null=True)


class SecretAnswer(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="Given out once")


class SessionCards(MembersView):
    """Ask the visitor of a conversation."""

    reading, writing = KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE
    recognises_repeats = True

    @extend_schema(
        operation_id="session_cards_create",
        tags=["sessions"],
        request=AskRequest,
        responses={
            201: CardAnswer,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            **_REFUSALS,
            409: OpenApiResponse(description="`owned_by_other`, `too_many_questions`"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        wanted = AskRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        asked = _asked(dict(wanted.validated_data))
        user = self.caller.user
        with tenant_scope(self.caller.tenant_id):
            name = user.display_name if user is not None else ""
            card = prompts.ask_visitor(
                session_id, asked, actor=self.caller.actor, user=user, name=name, nonce=self.request_digest
            )
            return Response(CardAnswer(card).data, status=status.HTTP_201_CREATED, headers=_KEPT_NOWHERE)


class OneSessionCard(MembersView):
    """What came of it; or take it back."""

    reading, writing = KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE

    @extend_schema(operation_id="session_card", tags=["sessions"], responses={200: CardAnswer, **_REFUSALS})
    def get(self, request: Request, session_id: UUID, card_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(CardAnswer(prompts.card_of(card_id, session_id)).data, headers=_KEPT_NOWHERE)

    @extend_schema(
        operation_id="session_card_withdraw", tags=["sessions"], responses={200: CardAnswer, **_REFUSALS, **_SETTLED}
    )
    def delete(self, request: Request, session_id: UUID, card_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            prompts.withdraw(card_id, session_id, actor=self.caller.actor, user=self.caller.user)
            return Response(CardAnswer(prompts.card_of(card_id, session_id)).data, headers=_KEPT_NOWHERE)


class TakeSecret(OwnersView):
    """Take out what the visitor gave in secret; it is there once."""

    reading, writing = KeyScope.SESSIONS_READ, KeyScope.SESSIONS_SECRETS
    answers_secret = True

    @extend_schema(
        operation_id="session_card_secret",
        tags=["sessions"],
        request=None,
        responses={
            200: SecretAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`secret_not_there`: not given yet, or taken already"),
        },
    )
    def post(self, request: Request, session_id: UUID, card_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            value = prompts.take_secret(card_id, session_id, actor=self.caller.actor)
        return Response({"value": value}, headers=_KEPT_NOWHERE)


class FillRequest(RequestSerializer):
    answers = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=1000), help_text="By the names of the form's fields"
    )


class FillAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField(help_text="Its place in the conversation; its `decision` frame has the same")
    repeated = serializers.BooleanField(help_text="The same was sent before; nothing was written")


class WidgetCard(APIView):
    """The visitor fills in a form that they were asked; over HTTP, so that a line that is down loses nothing."""

    @extend_schema(
        operation_id="widget_card_fill",
        tags=["widget"],
        request=FillRequest,
        responses={
            200: FillAnswer,
            400: OpenApiResponse(description="`invalid_answers`: `fields` has the problem of each"),
            401: OpenApiResponse(description="`not_authenticated`: no session token, or one no longer good"),
            404: OpenApiResponse(description="`not_found`: unknown, no form, or asked in another conversation"),
            409: OpenApiResponse(description="`card_decided`, `card_expired`, `card_withdrawn`, `card_not_yours`"),
            429: OpenApiResponse(description="`rate_limited`: too often; `retry_after` seconds"),
        },
    )
    def post(self, request: Request, key: str, card_id: UUID) -> Response:
        visitor = visitor_of(request, key)
        wanted = FillRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        address = address_of(request)
        ratelimit.count("fill", visitor.session_id, most=40, address=address, most_there=240, seconds=600)
        with tenant_scope(visitor.tenant_id):
            _require_open(visitor)
            accepted = prompts.fill(visitor, card_id, wanted.validated_data["answers"])
        return Response({"seq": accepted.seq, "repeated": accepted.repeated}, headers=_KEPT_NOWHERE)


class SecretRequest(RequestSerializer):
    value = serializers.CharField(max_length=prompts.MAX_SECRET, trim_whitespace=False)


class SecretStored(serializers.Serializer[Any]):
    stored = serializers.BooleanField()


class Secrets(APIView):
    """A visitor gives what was asked for in secret, with their session token; or a member of staff, logged in, what a
    connection that is being set up asks for (apps.connections)."""

    def get_authenticators(self) -> list[BaseAuthentication]:
        """A login counts, with Django's CSRF token, where no token of a conversation is sent."""
        return [] if self.request and self.request.headers.get("Authorization") else [SessionAuthentication()]

    @extend_schema(
        operation_id="secret_store",
        tags=["widget"],
        request=SecretRequest,
        responses={
            200: SecretStored,
            400: OpenApiResponse(description="`invalid`, `secret_unfit`: no value, or too long a one"),
            401: OpenApiResponse(description="`not_authenticated`: no login, no session token, or one no longer good"),
            403: OpenApiResponse(description="`forbidden_role`: this role stores no secrets of connections"),
            404: OpenApiResponse(description="`not_found`: unknown, foreign, or asked in another conversation"),
            409: OpenApiResponse(
                description="`card_decided`, `card_expired`, `card_withdrawn`, `card_not_yours`,"
                " `secret_stored_already`, `secret_expired`"
            ),
        },
    )
    def post(self, request: Request, ref_id: UUID) -> Response:
        if not request.headers.get("Authorization") and request.user and request.user.is_authenticated:
            store_for_connection(request, ref_id)
            return Response({"stored": True}, headers=_KEPT_NOWHERE)
        visitor = _visitor(request)
        given = SecretRequest(data=request.data)
        given.is_valid(raise_exception=True)
        with tenant_scope(visitor.tenant_id):
            _require_open(visitor)
            prompts.store_secret(visitor, ref_id, given.validated_data["value"])
        return Response({"stored": True}, headers=_KEPT_NOWHERE)


def _visitor(request: Request) -> tokens.Visitor:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    visitor = tokens.read(token.strip()) if scheme.lower() == "bearer" else None
    if visitor is None:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Please reopen this conversation."))
    return visitor


def _require_open(visitor: tokens.Visitor) -> None:
    deployment = session_by_id(visitor.session_id).deployment
    if not deployment.enabled or deployment.public_key != visitor.deployment_key:
        raise NotFound()


def _asked(given: dict[str, Any]) -> prompts.Asked:
    """Raises 400 `invalid` with the names of the fields that do not fit, never their values."""
    shape = _SHAPES[given.pop("kind")]
    try:
        return shape.model_validate(given)
    except Unfit as error:
        fields = sorted({str(each["loc"][0]) if each["loc"] else "all" for each in error.errors()})
        raise SilasError(ErrorCode.INVALID, gettext("Some fields are invalid."), extra={"fields": fields}) from None
