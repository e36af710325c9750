"""REST API of conversations (contract interfaces, HTTP): list, read, take over, answer, note, label and resolve them;
labels and canned replies.

For members as in the console, and API keys with the scopes `sessions:read` and `sessions:write`. A conversation's ETag
is another one after every change, so that `If-Match` refuses what was decided about an older state.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.inbox import handoff, labels_and_replies, queries, reading, services
from apps.inbox.enums import Colour, DeskStatus, Priority, Shown, SlaTarget, Sort
from apps.inbox.handoff import MAX_REPLY
from apps.inbox.labels_and_replies import MAX_LABELS, MAX_NAME
from apps.inbox.queries import Asked
from apps.inbox.search import LONGEST
from apps.inbox.services import Edit
from apps.inbox.staff import ApiClient, Staff, require_staff
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.queries import chronicle_after, session_by_id
from apps.sessions.ratelimit.limits import bounds
from apps.sessions.schemas import MAX_TEXT, Busy
from apps.sessions.services import accept_message
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    PageRequest,
    RequestSerializer,
    ScopedView,
    if_match_versions,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.models import User
from apps.tenants.queries import deployment_by_id
from apps.visitors.api.sessions import NewConversation
from apps.visitors.start_session import Wish, begin
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

UNASSIGNED = "none"
# A conversation is open while it is neither snoozed nor resolved, whether the bot or a member answers it.
SHOWN_AS = {DeskStatus.OPEN: Shown.ACTIVE, DeskStatus.SNOOZED: Shown.SNOOZED, DeskStatus.RESOLVED: Shown.RESOLVED}
_SAVE_REFUSALS: dict[int, Any] = {
    **_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `bad_name`, `bad_colour`, `invalid_text`: a field is wrong"),
    409: OpenApiResponse(description="`name_taken`; `too_many`"),
}


class MemberName(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField(source="display_name")


class LabelAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    colour = serializers.ChoiceField(choices=Colour.values)


class TeamName(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()


class VisitorAnswer(serializers.Serializer[Any]):
    name = serializers.CharField(source="visitor_name")
    customer = serializers.CharField(source="whose", help_text="The verified customer's id; empty before any")
    level = serializers.SerializerMethodField(help_text="The access level that counts now")
    attributes = serializers.DictField(child=serializers.CharField(), help_text="What the website says; unproved")

    def get_level(self, row: Any) -> str:
        return str(row.level_at(now()))


class ClockAnswer(serializers.Serializer[Any]):
    target = serializers.ChoiceField(choices=SlaTarget.choices)
    due_at = serializers.DateTimeField()
    is_missed = serializers.BooleanField(help_text="It was due before")
    policy = serializers.UUIDField(source="policy_id", allow_null=True, help_text="Null once it was deleted")


class ConversationAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="session.id")
    deployment = serializers.UUIDField(source="session.deployment_id")
    state = serializers.ChoiceField(choices=DeskStatus.values, source="standing.status")
    snoozed_until = serializers.DateTimeField(
        source="standing.until", allow_null=True, help_text="Null for not before the visitor writes"
    )
    owner = serializers.ChoiceField(choices=Owner.values, source="session.owner", help_text="Who answers")
    owner_member = MemberName(source="session.owner_user", allow_null=True, help_text="Null for bots and API keys")
    assignee = MemberName(source="standing.assignee", allow_null=True)
    team = TeamName(source="standing.team", allow_null=True)
    priority = serializers.ChoiceField(choices=Priority.values, source="standing.priority", help_text="Empty for none")
    waiting_since = serializers.DateTimeField(
        source="session.wanted_person_at", allow_null=True, help_text="Since when the visitor waits for a person"
    )
    queue = serializers.CharField(source="session.wanted_queue")
    labels = LabelAnswer(many=True)
    visitor = VisitorAnswer(source="session")
    language = serializers.CharField(source="session.language", help_text="What the visitor wrote last")
    seq = serializers.IntegerField(source="session.seq", help_text="The number of its last entry")
    preview = serializers.CharField(source="session.preview", help_text="The beginning of the last message")
    last_sender = serializers.CharField(source="session.last_sender")
    asked = serializers.CharField(help_text="The beginning of what the visitor wrote last")
    channel = serializers.CharField(source="session.channel", help_text="Empty for the widget")
    unread = serializers.IntegerField(help_text="Messages of the visitor that you have not read; 0 for an API key")
    sla = ClockAnswer(source="clock", allow_null=True, help_text="The clock that is due first, while it is open")
    created_at = serializers.DateTimeField(source="session.created_at")
    updated_at = serializers.DateTimeField(source="session.last_active_at", help_text="The time of its last entry")


class ReadStateAnswer(serializers.Serializer[Any]):
    unread = serializers.IntegerField(help_text="Messages of the visitor that the member has not read")


class ReadStateRequest(RequestSerializer):
    read = serializers.BooleanField(help_text="False marks the visitor's last message as unread")


class ConversationListAnswer(serializers.Serializer[Any]):
    sessions = ConversationAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class ConversationListRequest(PageRequest):
    state = serializers.ChoiceField(choices=DeskStatus.values, required=False)
    # Serializers have a label of their own, which is not this field.
    label = serializers.UUIDField(required=False, default=None)  # type: ignore[assignment]  # as below
    team = serializers.UUIDField(required=False, default=None)
    deployment = serializers.UUIDField(required=False, default=None)
    assignee = serializers.CharField(
        required=False,
        default="",
        help_text=f"A member's id, or `{UNASSIGNED}`; without an assignee, who answers counts",
    )
    customer = serializers.CharField(required=False, default="", max_length=80, help_text="A verified customer's id")
    updated_since = serializers.DateTimeField(required=False, default=None, help_text="Those with entries since then")
    search = serializers.CharField(required=False, default="", max_length=LONGEST, help_text="As in the inbox")
    overdue = serializers.BooleanField(required=False, default=False, help_text="Those that missed an SLA target")
    sort = serializers.ChoiceField(
        choices=Sort.values,
        required=False,
        default=Sort.ACTIVITY.value,
        help_text="`due`: those with an SLA clock, the next due first",
    )

    def validate_assignee(self, value: str) -> str:
        if value in ("", UNASSIGNED):
            return value and "nobody"
        return str(serializers.UUIDField().run_validation(value))


class ConversationEdit(RequestSerializer):
    owner = serializers.ChoiceField(
        choices=Owner.values, required=False, help_text="`human` takes over, `bot` hands back"
    )
    state = serializers.ChoiceField(choices=DeskStatus.values, required=False)
    snoozed_until = serializers.DateTimeField(
        required=False, allow_null=True, help_text="With the state `snoozed`; null for not before the visitor writes"
    )
    assignee = serializers.UUIDField(required=False, allow_null=True, help_text="A member's id; null unassigns")
    team = serializers.UUIDField(required=False, allow_null=True, help_text="A team's id; null takes it from any")
    priority = serializers.ChoiceField(choices=Priority.values, required=False, help_text="Empty for none")
    labels = serializers.ListField(
        child=serializers.UUIDField(), max_length=MAX_LABELS, required=False, help_text="All that it bears afterwards"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(gettext("Name at least one change."))
        if "snoozed_until" in attrs and attrs.get("state") != DeskStatus.SNOOZED:
            raise serializers.ValidationError({"snoozed_until": [gettext("Send it with the state snoozed.")]})
        return attrs


class MessageAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField(help_text="Its number in the conversation, without gaps")
    kind = serializers.ChoiceField(choices=EntryKind.values)
    sender = serializers.ChoiceField(choices=Sender.values)
    author = MemberName(allow_null=True, help_text="The member who wrote it")
    text = serializers.CharField()
    # A serializer has data of its own, which is not this field.
    data = serializers.DictField(  # type: ignore[assignment]  # hides the serializer's own attribute
        source="payload", help_text="What its kind says besides, as on the widget's socket"
    )
    created_at = serializers.DateTimeField()


class MessagesAnswer(serializers.Serializer[Any]):
    messages = MessageAnswer(many=True)
    next = serializers.IntegerField(allow_null=True, help_text="`after_seq` of the next page; null at the end")


class MessagesRequest(RequestSerializer):
    after_seq = serializers.IntegerField(default=0, min_value=0, max_value=2**62)
    limit = serializers.IntegerField(default=50, min_value=1, max_value=200)


class TextRequest(RequestSerializer):
    text = serializers.CharField(help_text=f"1 to {MAX_REPLY} characters", trim_whitespace=False)


class NoteAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    author = MemberName(allow_null=True)
    text = serializers.CharField()
    mentions = MemberName(many=True, source="mentioned", help_text="Members whom it names with `@`")
    after_seq = serializers.IntegerField(source="after", help_text="The entry behind which it was written")
    created_at = serializers.DateTimeField()


class NotesAnswer(serializers.Serializer[Any]):
    notes = NoteAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class LabelRequest(RequestSerializer):
    name = serializers.CharField(help_text=f"1 to {MAX_NAME} characters")
    colour = serializers.CharField(help_text=", ".join(Colour.values))


class LabelsAnswer(serializers.Serializer[Any]):
    labels = LabelAnswer(many=True)


class CannedReplyRequest(RequestSerializer):
    name = serializers.CharField(help_text=f"1 to {MAX_NAME} characters")
    text = serializers.CharField(help_text="`{visitor name}` is replaced when the console inserts it")


class CannedReplyAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    text = serializers.CharField()


class CannedRepliesAnswer(serializers.Serializer[Any]):
    replies = CannedReplyAnswer(many=True)


class NewConversationRequest(NewConversation):
    deployment = serializers.UUIDField()


class NewConversationAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    level = serializers.CharField(help_text="What the customer can reach now; gates raise it")
    identity_problem = serializers.CharField(help_text="Why the identity token was not believed, or empty")


class VisitorMessageRequest(RequestSerializer):
    text = serializers.CharField(max_length=MAX_TEXT, help_text=f"1 to {MAX_TEXT} characters")


class VisitorMessageAnswer(serializers.Serializer[Any]):
    seq = serializers.IntegerField(help_text="Its place in the conversation; the answer follows it")
    repeated = serializers.BooleanField(help_text="It was stored already under this idempotency key")


class StaffView(ScopedView):
    """All members may read; the services refuse changes to those who may not make them."""

    capability = Capability.LOOK
    reading, writing = KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE

    @property
    def staff(self) -> Staff:
        """Who acts: the member, or the program with an API key."""
        return self.caller.user or ApiClient(self.caller.actor)


class _ConversationView(StaffView):
    def shown(self, session_id: UUID) -> Response:
        """The conversation with its ETag. Opens its own scope: entries are written when the one before commits."""
        with tenant_scope(self.caller.tenant_id):
            listed = queries.conversation(session_id, self.caller.user)
            response = uncached(ConversationAnswer(listed).data)
        response["ETag"] = f'"{queries.version_of(listed)}"'
        return response


class Conversations(_ConversationView):
    @extend_schema(
        operation_id="sessions_list",
        tags=["sessions"],
        parameters=[ConversationListRequest],
        responses={200: ConversationListAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List conversations with messages, the last active first."""
        values = validated(ConversationListRequest, request.query_params)
        asked = Asked(
            shown=SHOWN_AS[DeskStatus(values["state"])] if "state" in values else Shown.ANY,
            label=values["label"],
            team=values["team"],
            deployment=values["deployment"],
            assignee=values["assignee"],
            words=values["search"],
            customer=values["customer"],
            since=values["updated_since"],
            before=values["before"],
            overdue=values["overdue"],
            sort=Sort(values["sort"]),
        )
        with tenant_scope(self.caller.tenant_id):
            page = queries.conversations(asked, self.caller.user, limit=values["limit"])
            return uncached(ConversationListAnswer({"sessions": page.rows, "next": page.older}).data)

    @extend_schema(
        operation_id="sessions_create",
        tags=["sessions"],
        request=NewConversationRequest,
        responses={
            201: NewConversationAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`: a field is wrong"),
            403: OpenApiResponse(description="`consent_required`; `forbidden_role`; `forbidden_scope`"),
            404: OpenApiResponse(description="`not_found`: the deployment is unknown, foreign or turned off"),
        },
    )
    def post(self, request: Request) -> Response:
        """Start a conversation from your server. What the customer may reach is decided as for the widget's visitors:
        by the signed identity and by gates, never by the API key."""
        values = validated(NewConversationRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_staff(self.staff)
            deployment = deployment_by_id(values["deployment"])
        if not deployment.enabled:
            raise NotFound()
        wish = Wish(
            locale=values.get("locale", ""),
            consent=values.get("consent", ""),
            token=values.get("identity_token") or "",
            attributes=values.get("attributes", {}),
            started_by=self.caller.actor,
        )
        begun = begin(deployment, wish)
        with tenant_scope(self.caller.tenant_id):
            session = session_by_id(begun.started.session_id)
            answer = {"id": session.pk, "level": session.level_at(now()), "identity_problem": begun.reason}
            return uncached(NewConversationAnswer(answer).data, status.HTTP_201_CREATED)


class ReadState(_ConversationView):
    @extend_schema(
        operation_id="session_read_state_get", tags=["sessions"], responses={200: ReadStateAnswer, **_REFUSALS}
    )
    def get(self, request: Request, session_id: UUID, member_id: UUID) -> Response:
        """What a member has not read in a conversation. Members see their own, API keys everybody's."""
        with tenant_scope(self.caller.tenant_id):
            return self._answer(session_id, reading.reader(member_id, self.staff))

    @extend_schema(
        operation_id="session_read_state_set",
        tags=["sessions"],
        request=ReadStateRequest,
        responses={200: ReadStateAnswer, **_REFUSALS},
    )
    def put(self, request: Request, session_id: UUID, member_id: UUID) -> Response:
        """Mark a conversation as read or unread for a member."""
        values = validated(ReadStateRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            member = reading.reader(member_id, self.staff)
            (reading.mark_read if values["read"] else reading.mark_unread)(session_id, member)
            return self._answer(session_id, member)

    def _answer(self, session_id: UUID, member: User) -> Response:
        return uncached(ReadStateAnswer(queries.conversation(session_id, member)).data)


class VisitorMessages(_ConversationView):
    recognises_repeats = True

    @extend_schema(
        operation_id="session_visitor_messages_create",
        tags=["sessions"],
        request=VisitorMessageRequest,
        responses={
            202: VisitorMessageAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`: empty or too long"),
            409: OpenApiResponse(description="`conversation_full`"),
            429: OpenApiResponse(description="`rate_limited`: too many wait for an answer; `retry_after` seconds"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Hand in what the customer wrote, in a conversation that the same caller started. It passes the same gates,
        limits and budgets as a message from the widget; the answer appears among the conversation's messages."""
        with tenant_scope(self.caller.tenant_id):
            require_staff(self.staff)
        text = validated(VisitorMessageRequest, request.data)["text"]
        nonce = self.request_digest
        with tenant_scope(self.caller.tenant_id):
            if session_by_id(session_id).started_by != self.caller.actor:
                raise NotFound()
            accepted = accept_message(session_id, text=text, client_id=nonce, bounds=bounds())
            if isinstance(accepted, Busy):
                extra = {"retry_after": accepted.retry_after}
                raise SilasError(ErrorCode.RATE_LIMITED, accepted.said, extra=extra)
            if accepted.repeated:
                _require_same(text, chronicle_after(session_id, accepted.seq - 1, limit=1)[0].text)
            return uncached(VisitorMessageAnswer(accepted).data, status.HTTP_202_ACCEPTED)


class OneConversation(_ConversationView):
    @extend_schema(operation_id="sessions_get", tags=["sessions"], responses={200: ConversationAnswer, **_REFUSALS})
    def get(self, request: Request, session_id: UUID) -> Response:
        return self.shown(session_id)

    @extend_schema(
        operation_id="sessions_edit",
        tags=["sessions"],
        request=ConversationEdit,
        parameters=[IF_MATCH],
        responses={
            200: ConversationAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`: a field is wrong; `bad_time`"),
            409: OpenApiResponse(description="`owned_by_other`: a colleague answers; `assignee_unfit`"),
            412: OpenApiResponse(description="`conversation_changed`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Take over or hand back, resolve, snooze or reopen, assign and label a conversation: all of it or nothing."""
        changes = Edit(**validated(ConversationEdit, request.data))  # type: ignore[typeddict-item]  # as validated
        with tenant_scope(self.caller.tenant_id):
            services.edit(session_id, self.staff, changes, versions=if_match_versions(request))
        return self.shown(session_id)


class WithdrawnAnswer(serializers.Serializer[Any]):
    withdrawn = serializers.IntegerField(help_text="How many requests for approval there were")


class WithdrawRequests(_ConversationView):
    @extend_schema(
        operation_id="session_requests_withdraw",
        tags=["sessions"],
        request=None,
        responses={
            200: WithdrawnAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`not_yours`: take over the conversation first"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Withdraw the bot's requests for approval in a conversation that the caller has taken over."""
        with tenant_scope(self.caller.tenant_id):
            return uncached({"withdrawn": handoff.withdraw_requests(session_id, self.staff)})


class Messages(_ConversationView):
    recognises_repeats = True

    @extend_schema(
        operation_id="session_messages_list",
        tags=["sessions"],
        parameters=[MessagesRequest],
        responses={200: MessagesAnswer, **_REFUSALS},
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """List everything recorded in a conversation by `seq`, oldest first."""
        values = validated(MessagesRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            session, limit = session_by_id(session_id), values["limit"]
            rows = chronicle_after(session.pk, values["after_seq"], limit=limit + 1)
            following = rows[limit - 1].seq if len(rows) > limit else None
            prefetch_related_objects(rows, "author")
            return uncached(MessagesAnswer({"messages": rows[:limit], "next": following}).data)

    @extend_schema(
        operation_id="session_messages_create",
        tags=["sessions"],
        request=TextRequest,
        responses={
            201: MessageAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`, `invalid_text`: empty or too long"),
            409: OpenApiResponse(description="`not_taken_over`: the bot answers; `owned_by_other`"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Say something to the visitor, in a conversation that the caller has taken over."""
        text = validated(TextRequest, request.data)["text"]
        with tenant_scope(self.caller.tenant_id):
            entry = handoff.reply(session_id, self.staff, text, nonce=self.request_digest)
            _require_same(text, entry.text)
            return uncached(MessageAnswer(entry).data, status.HTTP_201_CREATED)


class Notes(_ConversationView):
    recognises_repeats = True

    @extend_schema(
        operation_id="session_notes_list",
        tags=["sessions"],
        parameters=[PageRequest],
        responses={200: NotesAnswer, **_REFUSALS},
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """List private notes, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.notes_page(session_by_id(session_id).pk, **values)
            prefetch_related_objects(rows, "mentions__user")
            return uncached(NotesAnswer({"notes": rows, "next": following}).data)

    @extend_schema(
        operation_id="session_notes_create",
        tags=["sessions"],
        request=TextRequest,
        responses={
            201: NoteAnswer,
            **_REFUSALS,
            400: OpenApiResponse(description="`invalid`, `invalid_text`: empty or too long"),
        },
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Write a note for the team; `@` and the name of a member mentions them. No visitor and no model reads it."""
        text = validated(TextRequest, request.data)["text"]
        with tenant_scope(self.caller.tenant_id):
            note = services.note(session_id, self.staff, text, nonce=self.request_digest)
            _require_same(text, note.text)
            return uncached(NoteAnswer(note).data, status.HTTP_201_CREATED)


class Labels(_ConversationView):
    @extend_schema(operation_id="labels_list", tags=["labels"], responses={200: LabelsAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """List all labels by name."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(LabelsAnswer({"labels": queries.labels()}).data)

    @extend_schema(
        operation_id="labels_create",
        tags=["labels"],
        request=LabelRequest,
        responses={201: LabelAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        values = validated(LabelRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            label = labels_and_replies.save_label(self.staff, **values)
            return with_etag(LabelAnswer(label).data, status.HTTP_201_CREATED)


class OneLabel(_ConversationView):
    @extend_schema(operation_id="labels_get", tags=["labels"], responses={200: LabelAnswer, **_REFUSALS})
    def get(self, request: Request, label_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(LabelAnswer(queries.label(label_id)).data)

    @extend_schema(
        operation_id="labels_replace",
        tags=["labels"],
        request=LabelRequest,
        parameters=[IF_MATCH],
        responses={200: LabelAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def put(self, request: Request, label_id: UUID) -> Response:
        values = validated(LabelRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, label_id)
            return with_etag(LabelAnswer(labels_and_replies.save_label(self.staff, label_id=label_id, **values)).data)

    @extend_schema(
        operation_id="labels_delete",
        tags=["labels"],
        parameters=[IF_MATCH],
        responses={204: None, **_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, label_id: UUID) -> Response:
        """Delete a label, and take it off every conversation."""
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, label_id)
            labels_and_replies.delete_label(self.staff, label_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_unchanged(self, request: Request, label_id: UUID) -> None:
        require_unchanged(request, LabelAnswer(labels_and_replies.lock_label(self.staff, label_id)).data)


class CannedReplies(_ConversationView):
    @extend_schema(
        operation_id="canned_replies_list",
        tags=["canned replies"],
        responses={200: CannedRepliesAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List all canned replies by name."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(CannedRepliesAnswer({"replies": queries.canned_replies()}).data)

    @extend_schema(
        operation_id="canned_replies_create",
        tags=["canned replies"],
        request=CannedReplyRequest,
        responses={201: CannedReplyAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        values = validated(CannedReplyRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            reply = labels_and_replies.save_reply(self.staff, **values)
            return with_etag(CannedReplyAnswer(reply).data, status.HTTP_201_CREATED)


class OneCannedReply(_ConversationView):
    @extend_schema(
        operation_id="canned_replies_get", tags=["canned replies"], responses={200: CannedReplyAnswer, **_REFUSALS}
    )
    def get(self, request: Request, reply_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return with_etag(CannedReplyAnswer(queries.canned_reply(reply_id)).data)

    @extend_schema(
        operation_id="canned_replies_replace",
        tags=["canned replies"],
        request=CannedReplyRequest,
        parameters=[IF_MATCH],
        responses={200: CannedReplyAnswer, **_SAVE_REFUSALS, **CHANGED_MEANWHILE},
    )
    def put(self, request: Request, reply_id: UUID) -> Response:
        values = validated(CannedReplyRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, reply_id)
            reply = labels_and_replies.save_reply(self.staff, reply_id=reply_id, **values)
            return with_etag(CannedReplyAnswer(reply).data)

    @extend_schema(
        operation_id="canned_replies_delete",
        tags=["canned replies"],
        parameters=[IF_MATCH],
        responses={204: None, **_REFUSALS, **CHANGED_MEANWHILE},
    )
    def delete(self, request: Request, reply_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            self._require_unchanged(request, reply_id)
            labels_and_replies.delete_reply(self.staff, reply_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _require_unchanged(self, request: Request, reply_id: UUID) -> None:
        require_unchanged(request, CannedReplyAnswer(labels_and_replies.lock_reply(self.staff, reply_id)).data)


def _require_same(text: str, stored: str) -> None:
    """Raises 409 `idempotency_key_reused` when what is stored under the key is another text."""
    if text.strip() != stored:
        raise SilasError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
