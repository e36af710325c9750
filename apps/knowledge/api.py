"""REST API for owners to read gaps in the knowledge, propose answers, and dismiss, reopen and merge topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.knowledge import gaps
from apps.knowledge.enums import GapStatus
from apps.knowledge.models import GapQuestion, GapTopic
from apps.tenants.api_auth import OwnersView, RequestSerializer, validated
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

MOST, MOST_QUESTIONS = 100, 20
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_DRAFTED = "`draft_changed`: a draft's card opened at the same time; read the topic again"
_MEANWHILE = {409: OpenApiResponse(description=_DRAFTED)}
_SETTLED = {409: OpenApiResponse(description=f"`gap_settled`: already answered or dismissed; {_DRAFTED}")}


class GapTopicAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    question = serializers.CharField(help_text="The earliest wording, without personal data; a visitor's words")
    visitors = serializers.IntegerField(help_text="Different visitors since the last published answer")
    status = serializers.CharField(help_text="`open`, `drafted`, `answered` or `dismissed`")
    title = serializers.CharField(help_text="Of the answer that was proposed last")
    answer = serializers.CharField()
    collection = serializers.UUIDField(source="collection_id", allow_null=True)
    card = serializers.UUIDField(source="card_id", allow_null=True, help_text="The request for approval")
    first_at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()
    answered_at = serializers.DateTimeField(allow_null=True)


class GapQuestionAnswer(serializers.Serializer[Any]):
    text = serializers.CharField()
    reason = serializers.CharField(help_text="`unanswered` or `badly_rated`")
    conversation = serializers.UUIDField(source="session_id")
    asked_at = serializers.DateTimeField()


class GapDetailAnswer(GapTopicAnswer):
    questions = GapQuestionAnswer(many=True, help_text="The newest 20")


class GapAnswerRequest(RequestSerializer):
    title = serializers.CharField(max_length=200)
    answer = serializers.CharField(max_length=gaps.MAX_ANSWER_LENGTH)
    collection = serializers.UUIDField()


class GapMergeRequest(RequestSerializer):
    into = serializers.UUIDField(help_text="The topic that stays")


class GapsRequest(RequestSerializer):
    status = serializers.ChoiceField(choices=GapStatus.choices, default=GapStatus.OPEN)


class Gaps(OwnersView):
    """Topics of questions that were not answered or badly rated."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="gaps_list",
        tags=["knowledge"],
        parameters=[GapsRequest],
        responses={200: GapTopicAnswer(many=True), **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """The 100 topics of a status that most visitors asked about."""
        status = validated(GapsRequest, request.query_params)["status"]
        with tenant_scope(self.caller.tenant_id):
            rows = list(GapTopic.objects.filter(status=status)[:MOST])
        return Response(GapTopicAnswer(rows, many=True).data)


class Gap(OwnersView):
    """A topic with its questions."""

    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(operation_id="gap_read", tags=["knowledge"], responses={200: GapDetailAnswer, **_REFUSALS})
    def get(self, request: Request, topic_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            topic = GapTopic.objects.filter(pk=topic_id).first()
            if topic is None:
                raise NotFound()
            questions = list(GapQuestion.objects.filter(topic=topic)[:MOST_QUESTIONS])
        shown = {**GapTopicAnswer(topic).data, "questions": GapQuestionAnswer(questions, many=True).data}
        return Response(shown)


class _Change(OwnersView):
    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    def _changed(self, change: Callable[[], GapTopic]) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return Response(GapTopicAnswer(change()).data)


class GapAnswer(_Change):
    """Propose an answer. It is published when its card is approved."""

    @extend_schema(
        operation_id="gap_answer",
        tags=["knowledge"],
        request=GapAnswerRequest,
        responses={200: GapTopicAnswer, 400: OpenApiResponse(description="`invalid`"), **_SETTLED, **_REFUSALS},
    )
    def post(self, request: Request, topic_id: UUID) -> Response:
        fields = validated(GapAnswerRequest, request.data)
        title, text, collection_id = (fields[name] for name in ("title", "answer", "collection"))
        return self._changed(
            lambda: gaps.propose_answer(
                topic_id, title=title, text=text, collection_id=collection_id, actor=self.caller.actor
            )
        )


class GapDismissal(_Change):
    """Put a topic aside; a waiting request for approval is withdrawn."""

    @extend_schema(
        operation_id="gap_dismiss",
        tags=["knowledge"],
        request=None,
        responses={200: GapTopicAnswer, **_MEANWHILE, **_REFUSALS},
    )
    def post(self, request: Request, topic_id: UUID) -> Response:
        return self._changed(lambda: gaps.dismiss_topic(topic_id, actor=self.caller.actor))


class GapReopening(_Change):
    """Open an answered or dismissed topic again."""

    @extend_schema(
        operation_id="gap_reopen",
        tags=["knowledge"],
        request=None,
        responses={200: GapTopicAnswer, **_MEANWHILE, **_REFUSALS},
    )
    def post(self, request: Request, topic_id: UUID) -> Response:
        return self._changed(lambda: gaps.reopen_topic(topic_id, actor=self.caller.actor))


class GapMerge(_Change):
    """Move a topic's questions into another one."""

    @extend_schema(
        operation_id="gap_merge",
        tags=["knowledge"],
        request=GapMergeRequest,
        responses={200: GapTopicAnswer, 400: OpenApiResponse(description="`invalid`"), **_MEANWHILE, **_REFUSALS},
    )
    def post(self, request: Request, topic_id: UUID) -> Response:
        fields = validated(GapMergeRequest, request.data)
        into_id = fields["into"]
        return self._changed(lambda: gaps.merge_topics(topic_id, into_id=into_id, actor=self.caller.actor))
