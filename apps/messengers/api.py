"""REST API of channels beside the widget: add, change, check and remove them, and read what came and went.

For owners, and API keys with the scopes of settings. Secrets are written and never read back.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.messengers import ports, queries, services
from apps.messengers.cards import accounts
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import MOST_DAYS, CardPolicy, Channel, ChannelMessage
from apps.tenants.api_auth import (
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    OwnersView,
    PageRequest,
    RequestSerializer,
    if_match_versions,
    require_scope,
    uncached,
    validated,
)
from apps.tenants.enums import KeyScope
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, Any] = {
    **RESOURCE_REFUSALS,
    400: OpenApiResponse(description="`invalid`; `channel_settings`: `extra.fields` has the problem of each setting"),
    409: OpenApiResponse(description="`too_many`"),
}


class ChannelRequest(RequestSerializer):
    kind = serializers.ChoiceField(choices=ChannelKind.choices)
    deployment = serializers.UUIDField()
    name = serializers.CharField(max_length=80)
    settings = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=services.LONGEST_SETTING),
        default=dict,
        help_text="As `/api/v1/channel-kinds` lists them, secrets included",
    )


class ChannelEdit(RequestSerializer):
    name = serializers.CharField(max_length=80, required=False)
    settings = serializers.DictField(
        child=serializers.CharField(allow_blank=True, max_length=services.LONGEST_SETTING), required=False
    )
    enabled = serializers.BooleanField(required=False)


class ChannelTestRequest(RequestSerializer):
    recipient = serializers.CharField(
        max_length=254, help_text="An email address, a phone number with country code, or the id of a chat"
    )


class ChannelAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=ChannelKind.choices)
    deployment = serializers.UUIDField(source="deployment_id")
    name = serializers.CharField()
    settings = serializers.DictField(help_text="Without secrets")
    webhook = serializers.SerializerMethodField(help_text="The address that the provider calls")
    enabled = serializers.BooleanField()
    problem = serializers.CharField(
        help_text="The newest problem with the provider; empty when the last call succeeded"
    )
    created_at = serializers.DateTimeField()

    def get_webhook(self, row: Channel) -> str:
        return webhook_of(self.context["request"], row)


class ChannelsAnswer(serializers.Serializer[Any]):
    channels = ChannelAnswer(many=True)


class SettingAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    # A serializer has a label of its own, which is not this field.
    label = serializers.CharField()  # type: ignore[assignment]  # hides the serializer's own attribute
    help = serializers.CharField()
    secret = serializers.BooleanField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # as above


class ChannelKindAnswer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=ChannelKind.choices)
    settings = serializers.SerializerMethodField()

    @extend_schema_field(SettingAnswer(many=True))
    def get_settings(self, adapter: ports.Adapter) -> Any:
        return SettingAnswer(adapter.settings, many=True).data


class ChannelKindsAnswer(serializers.Serializer[Any]):
    kinds = ChannelKindAnswer(many=True)


class ChannelMessageAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    direction = serializers.ChoiceField(choices=Direction.choices)
    state = serializers.ChoiceField(choices=MessageState.choices)
    session = serializers.SerializerMethodField(help_text="The conversation; null for none")
    seq = serializers.IntegerField(allow_null=True, help_text="The entry of the conversation")
    problem = serializers.CharField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()

    def get_session(self, row: ChannelMessage) -> UUID | None:
        return row.thread.session_id if row.thread else None


class ChannelMessagesAnswer(serializers.Serializer[Any]):
    messages = ChannelMessageAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class CardPolicyAnswer(serializers.Serializer[Any]):
    enabled = serializers.BooleanField()
    channels = serializers.ListField(
        child=serializers.CharField(), help_text="Ids of channels, and `email`, in the order in which they are tried"
    )
    people = serializers.ListField(
        child=serializers.CharField(),
        help_text="User ids of members in the order in which they are asked; empty for everybody at once",
    )
    decide_in_place = serializers.BooleanField(help_text="Whether a button decides cards of low risk")
    verified_days = serializers.IntegerField(help_text="Days until an account has to be linked again")


class CardPolicyEdit(RequestSerializer):
    enabled = serializers.BooleanField(required=False)
    channels = serializers.ListField(child=serializers.CharField(max_length=36), max_length=51, required=False)
    people = serializers.ListField(child=serializers.CharField(max_length=36), max_length=50, required=False)
    decide_in_place = serializers.BooleanField(required=False)
    verified_days = serializers.IntegerField(required=False, min_value=1, max_value=MOST_DAYS)


def webhook_of(request: Any, row: Channel) -> str:
    return str(request.build_absolute_uri(reverse("channel-webhook", args=[row.kind, row.public_id])))


class _ChannelsView(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    def shown(self, row: Channel, code: int = status.HTTP_200_OK) -> Response:
        answer = uncached(ChannelAnswer(row, context={"request": self.request}).data, code)
        answer["ETag"] = f'"{row.version}"'
        return answer


class Channels(_ChannelsView):
    @extend_schema(
        operation_id="channels_list", tags=["channels"], responses={200: ChannelsAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List the channels, oldest first."""
        with tenant_scope(self.caller.tenant_id):
            rows = {"channels": queries.channels()}
            return uncached(ChannelsAnswer(rows, context={"request": request}).data)

    @extend_schema(
        operation_id="channels_create",
        tags=["channels"],
        request=ChannelRequest,
        responses={201: ChannelAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Add a channel. Check it afterwards: that tells the provider where to deliver messages."""
        values = validated(ChannelRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            row = services.add_channel(
                ChannelKind(values["kind"]),
                deployment_id=values["deployment"],
                name=values["name"],
                values=values["settings"],
                actor=self.caller.actor,
            )
            return self.shown(row, status.HTTP_201_CREATED)


class ChannelKinds(_ChannelsView):
    @extend_schema(
        operation_id="channel_kinds_list", tags=["channels"], responses={200: ChannelKindsAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """List what kinds of channels there are, and the settings of each."""
        return uncached(ChannelKindsAnswer({"kinds": ports.adapters()}).data)


class OneChannel(_ChannelsView):
    @extend_schema(operation_id="channels_get", tags=["channels"], responses={200: ChannelAnswer, **RESOURCE_REFUSALS})
    def get(self, request: Request, channel_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return self.shown(queries.channel(channel_id))

    @extend_schema(
        operation_id="channels_edit",
        tags=["channels"],
        request=ChannelEdit,
        parameters=[IF_MATCH],
        responses={
            200: ChannelAnswer,
            **_SAVE_REFUSALS,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, channel_id: UUID) -> Response:
        """Change a channel; what is left out stays, secrets included."""
        values = validated(ChannelEdit, request.data)
        with tenant_scope(self.caller.tenant_id):
            row = services.change_channel(
                channel_id,
                actor=self.caller.actor,
                name=values.get("name"),
                values=values.get("settings"),
                enabled=values.get("enabled"),
                versions=if_match_versions(request),
            )
            return self.shown(row)

    @extend_schema(operation_id="channels_delete", tags=["channels"], responses={204: None, **RESOURCE_REFUSALS})
    def delete(self, request: Request, channel_id: UUID) -> Response:
        """Remove a channel and its secrets; its conversations stay."""
        with tenant_scope(self.caller.tenant_id):
            services.remove_channel(channel_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Check(_ChannelsView):
    @extend_schema(
        operation_id="channels_check",
        tags=["channels"],
        request=None,
        responses={
            200: ChannelAnswer,
            **RESOURCE_REFUSALS,
            502: OpenApiResponse(description="`channel_refused`: `extra.reason` is what the provider says"),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        """Check the credentials at the provider, and tell it where to deliver messages."""
        with tenant_scope(self.caller.tenant_id):
            webhook = webhook_of(request, queries.channel(channel_id))
        connect = async_to_sync(services.connect)
        row = connect(self.caller.tenant_id, channel_id, webhook=webhook, actor=self.caller.actor)
        return self.shown(row)


class SendTest(_ChannelsView):
    @extend_schema(
        operation_id="channels_test",
        tags=["channels"],
        request=ChannelTestRequest,
        responses={
            204: None,
            **RESOURCE_REFUSALS,
            429: OpenApiResponse(description="`rate_limited`: too many tests within an hour"),
            502: OpenApiResponse(description="`channel_refused`: `extra.reason` is what the provider says"),
            503: OpenApiResponse(description="`unavailable`: tests cannot be counted now"),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        """Send a short message to an address."""
        recipient = validated(ChannelTestRequest, request.data)["recipient"]
        with tenant_scope(self.caller.tenant_id):
            queries.channel(channel_id)
        send = async_to_sync(services.send_test)
        send(self.caller.tenant_id, channel_id, peer=recipient, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Messages(_ChannelsView):
    @extend_schema(
        operation_id="channel_messages_list",
        tags=["channels"],
        parameters=[PageRequest],
        responses={200: ChannelMessagesAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        """List what came and went over a channel, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = ChannelMessage.objects.select_related("thread").filter(channel=queries.channel(channel_id))
            listed, following = read_page(rows, before=values["before"], limit=values["limit"])
            return uncached(ChannelMessagesAnswer({"messages": listed, "next": following}).data)


class OneCardPolicy(_ChannelsView):
    @extend_schema(
        operation_id="card_policy_get", tags=["channels"], responses={200: CardPolicyAnswer, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """Read which channels bring cards to approvers."""
        with tenant_scope(self.caller.tenant_id):
            return _shown_policy(accounts.saved_policy())

    @extend_schema(
        operation_id="card_policy_edit",
        tags=["channels"],
        request=CardPolicyEdit,
        parameters=[IF_MATCH],
        responses={
            200: CardPolicyAnswer,
            **OWNERS_REFUSALS,
            400: OpenApiResponse(description="`invalid`; `channel_settings`: `extra.fields` has each field's problem"),
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request) -> Response:
        """Change which channels bring cards to approvers; what is left out stays.

        Credentials with scopes can't allow buttons to decide, nor change where or by whom they decide, or for how long
        an account stays linked.
        """
        changes = validated(CardPolicyEdit, request.data)
        by = self.caller
        with tenant_scope(by.tenant_id):
            before = accounts.saved_policy()
            values = {**CardPolicyAnswer(before).data, **changes}
            longer = values["verified_days"] > before.verified_days
            switches_on = not before.decide_in_place or (values["enabled"] and not before.enabled)
            if values["decide_in_place"] and (longer or switches_on or {"channels", "people"} & changes.keys()):
                require_scope(by, None)
            versions = if_match_versions(request) or [str(before.version)]
            return _shown_policy(accounts.set_policy(by.user, actor=by.actor, **values, versions=versions))


def _shown_policy(row: CardPolicy) -> Response:
    answer = uncached(CardPolicyAnswer(row).data)
    answer["ETag"] = f'"{row.version}"'
    return answer
