"""HTTP endpoints of what a visitor does beside talking: offers, the pre-chat form, files, conversations, articles,
transcripts, ratings.

A URL belongs to one deployment and an answer to one conversation: the token names it, nothing in the body does. Offers
and articles need no conversation.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.access.tokens import Visitor
from apps.sessions.api import deployment_for, visitor_of
from apps.sessions.queries import session_by_id
from apps.sessions.schemas import MAX_CLIENT_ID
from apps.tenants.api_auth import RequestSerializer
from apps.visitors import (
    articles,
    conversation_list,
    file_serving,
    files,
    offers,
    prechat,
    ratelimit,
    ratings,
    transcripts,
)
from apps.visitors.conversation_list import ListedConversation
from apps.visitors.models import VisitorFile, VisitorOffers
from apps.visitors.models.visitors import MOST_MEGABYTES
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ratelimit.addresses import address_key, address_of, is_own_machine
from kernel.tenancy import tenant_scope

_CLIENT_ID = r"^[\w.:-]+$"
_NOT_STORED = {"Cache-Control": "no-store"}
_REFUSED = {
    400: OpenApiResponse(description="`invalid`: a field is wrong"),
    401: OpenApiResponse(description="`not_authenticated`: no session token, or one that is no longer good"),
    404: OpenApiResponse(description="`not_found`: not offered, unknown or another conversation's"),
    409: OpenApiResponse(description="Not in this state of the conversation"),
    429: OpenApiResponse(description="`rate_limited`: too often; `retry_after` seconds"),
}


class FilesOffered(serializers.Serializer[Any]):
    endings = serializers.ListField(child=serializers.CharField())
    most_bytes = serializers.IntegerField()


class ConsentAsked(serializers.Serializer[Any]):
    text = serializers.CharField()
    link = serializers.CharField(allow_blank=True)
    version = serializers.CharField()


class Question(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField(help_text="name, email, text or choice")
    label = serializers.CharField()  # type: ignore[assignment]  # its name on the wire
    required = serializers.BooleanField()  # type: ignore[assignment]  # the same
    choices = serializers.ListField(child=serializers.CharField(), required=False)


class PlaceOffered(serializers.Serializer[Any]):
    channel = serializers.CharField(help_text="As in `widget_continue`")
    name = serializers.CharField()


class ProactiveMessageOffered(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Goes with the message that answers it")
    text = serializers.CharField()
    page = serializers.CharField(allow_blank=True, help_text="With `*` for any characters; empty for every page")
    seconds = serializers.IntegerField()
    audience = serializers.CharField(help_text="everyone, new, returning or identified")
    language = serializers.CharField(allow_blank=True)
    repeat_days = serializers.IntegerField(help_text="0 for once per visitor")


class Offers(serializers.Serializer[Any]):
    files = FilesOffered(allow_null=True)
    consent = ConsentAsked(allow_null=True)
    form = Question(many=True)
    conversations = serializers.BooleanField()
    articles = serializers.BooleanField(help_text="There are articles that a visitor who is not verified can find")
    transcripts = serializers.BooleanField()
    email_answers = serializers.BooleanField(help_text="Answers can be sent to an address while the visitor is away")
    continue_in = PlaceOffered(many=True)
    rating = serializers.CharField(allow_blank=True, help_text="stars, thumbs, or empty")
    proactive_messages = ProactiveMessageOffered(many=True)


class WidgetOffers(APIView):
    """What a deployment offers beside talking; asked before there is a conversation, and stores nothing."""

    @extend_schema(operation_id="widget_offers", tags=["widget"], responses={200: Offers, 404: _REFUSED[404]})
    def get(self, request: Request, key: str) -> Response:
        deployment = deployment_for(request, key)
        with tenant_scope(deployment.tenant_id):
            shown = offers.shown(deployment)
        return Response(shown, headers={"Cache-Control": "no-cache"})


class FormRequest(RequestSerializer):
    answers = serializers.DictField(child=serializers.CharField(allow_blank=True, max_length=2000), allow_empty=True)


class FormAnswer(serializers.Serializer[Any]):
    repeated = serializers.BooleanField(help_text="The form had been answered before; nothing was written")


class WidgetForm(APIView):
    """Answer the form before the first word; once a conversation."""

    @extend_schema(
        operation_id="widget_form", tags=["widget"], request=FormRequest, responses={200: FormAnswer, **_REFUSED}
    )
    def post(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        wanted = FormRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        ratelimit.count("form", visitor.session_id, most=20, address=address_of(request), most_there=120, seconds=600)
        with tenant_scope(visitor.tenant_id):
            is_new = prechat.answer(visitor.session_id, wanted.validated_data["answers"])
        return Response({"repeated": not is_new}, headers=_NOT_STORED)


class FileRequest(RequestSerializer):
    file = serializers.FileField(max_length=500)
    client_id = serializers.RegexField(_CLIENT_ID, max_length=MAX_CLIENT_ID, help_text="Sent twice, kept once")


class FileAnswer(serializers.Serializer[Any]):
    file_id = serializers.UUIDField()
    seq = serializers.IntegerField(help_text="Its place in the conversation; its `file` frame has the same")
    name = serializers.CharField()
    kind = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes")


class WidgetFiles(APIView):
    """Send a file into the conversation."""

    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="widget_file_send",
        tags=["widget"],
        request={"multipart/form-data": FileRequest},
        responses={
            201: FileAnswer,
            **_REFUSED,
            400: OpenApiResponse(description="`file_kind`: not a kind that is taken; `invalid`: a field is wrong"),
            413: OpenApiResponse(description="`file_too_large`; `most_bytes`"),
        },
    )
    def post(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        _refuse_endless(request)
        wanted = FileRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        ratelimit.count("file", visitor.session_id, most=30, address=address_of(request), most_there=120, seconds=600)
        sent, client_id = wanted.validated_data["file"], wanted.validated_data["client_id"]
        row = files.keep(
            visitor.tenant_id, visitor.session_id, name=sent.name, chunks=sent.chunks(), client_id=client_id
        )
        return Response(_shown(row), status=status.HTTP_201_CREATED, headers=_NOT_STORED)


class WidgetFile(APIView):
    """A file of this conversation, to save."""

    @extend_schema(operation_id="widget_file", tags=["widget"], responses={200: OpenApiTypes.BINARY, **_REFUSED})
    def get(self, request: Request, key: str, file_id: UUID) -> HttpResponseBase:
        visitor = present_visitor(request, key)
        with tenant_scope(visitor.tenant_id):
            row, place = files.file_of(visitor.session_id, file_id)
        return file_serving.as_download(row, place)


class ConversationsRequest(RequestSerializer):
    resume_tokens = serializers.ListField(
        child=serializers.CharField(max_length=128), max_length=conversation_list.MOST
    )


class Conversation(serializers.Serializer[Any]):
    place = serializers.IntegerField(help_text="Of its token in what was sent")
    session_id = serializers.UUIDField()
    preview = serializers.CharField(help_text="The last line")
    sender = serializers.CharField()
    last_active_at = serializers.DateTimeField()
    seq = serializers.IntegerField()
    unread = serializers.IntegerField(help_text="Messages of bot and agents that no window of the visitor has shown")
    needs_answer = serializers.BooleanField(help_text="A question to the visitor is open")
    awaits_approval = serializers.BooleanField(help_text="A request waits for the team's approval")


class WidgetConversations(APIView):
    """The conversations to which the browser holds the resume tokens. A POST, so that tokens are in no URL."""

    @extend_schema(
        operation_id="widget_conversations",
        tags=["widget"],
        request=ConversationsRequest,
        responses={200: Conversation(many=True), **_REFUSED},
    )
    def post(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        wanted = ConversationsRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        ratelimit.count("list", visitor.session_id, most=120, address=address_of(request), most_there=600, seconds=600)
        shown = wanted.validated_data["resume_tokens"]
        with tenant_scope(visitor.tenant_id):
            _require_offered(visitor, "conversations")
            found = conversation_list.conversations(visitor.session_id, shown)
        return Response([_listed(shown.index(each.token), each) for each in found], headers=_NOT_STORED)


class ArticleSearchRequest(RequestSerializer):
    query = serializers.CharField(max_length=articles.LONGEST_QUERY)


class ArticleFound(serializers.Serializer[Any]):
    document_id = serializers.UUIDField()
    title = serializers.CharField()
    sentence = serializers.CharField(help_text="What it says about the query")


class ArticlesFound(serializers.Serializer[Any]):
    articles = ArticleFound(many=True)


class WidgetArticleSearch(APIView):
    """The articles that answer a query, best first. A POST, so that what is searched for is in no URL. Without a token
    the articles are those that a visitor who is not verified may read."""

    @extend_schema(
        operation_id="widget_article_search",
        tags=["widget"],
        request=ArticleSearchRequest,
        responses={200: ArticlesFound, **_REFUSED},
    )
    def post(self, request: Request, key: str) -> Response:
        reader, whom = _reader(request, key)
        wanted = ArticleSearchRequest(data=request.data)
        wanted.is_valid(raise_exception=True)
        ratelimit.count("search", whom, most=60, address=address_of(request), most_there=300, seconds=600)
        found = articles.search(reader, wanted.validated_data["query"])
        return Response(ArticlesFound({"articles": found}).data, headers=_NOT_STORED)


class ArticleAnswer(serializers.Serializer[Any]):
    document_id = serializers.UUIDField()
    title = serializers.CharField()
    url = serializers.CharField(allow_blank=True, help_text="The original; empty where there is none")
    html = serializers.CharField(help_text="Rendered and cleaned, as messages are")
    is_whole = serializers.BooleanField(help_text="False for a long article, whose end is left out")


class WidgetArticle(APIView):
    """One article, for the visitor whose level reaches it. Without a token the level is the lowest."""

    @extend_schema(operation_id="widget_article", tags=["widget"], responses={200: ArticleAnswer, **_REFUSED})
    def get(self, request: Request, key: str, document_id: UUID) -> Response:
        reader, whom = _reader(request, key)
        ratelimit.count("article", whom, most=120, address=address_of(request), most_there=600, seconds=600)
        found = articles.open_article(reader, document_id)
        return Response(ArticleAnswer(found).data, headers=_NOT_STORED)


class TranscriptAsked(RequestSerializer):
    address = serializers.CharField(max_length=254)
    client_id = serializers.RegexField(_CLIENT_ID, max_length=MAX_CLIENT_ID)


class TranscriptAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.CharField(help_text="owed, sent or given_up")


class WidgetTranscripts(APIView):
    """Ask for what was said so far by e-mail."""

    @extend_schema(
        operation_id="widget_transcript_ask",
        tags=["widget"],
        request=TranscriptAsked,
        responses={201: TranscriptAnswer, **_REFUSED},
    )
    def post(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        wanted = TranscriptAsked(data=request.data)
        wanted.is_valid(raise_exception=True)
        address = wanted.validated_data["address"]
        with tenant_scope(visitor.tenant_id):
            _require_offered(visitor, "transcripts")
        transcripts.check_pace(visitor.session_id, address, ip=address_of(request))
        with tenant_scope(visitor.tenant_id):
            row = transcripts.ask(visitor.session_id, **wanted.validated_data)
        return Response({"id": row.pk, "state": row.state}, status=status.HTTP_201_CREATED, headers=_NOT_STORED)


class WidgetTranscript(APIView):
    """How far a letter is."""

    @extend_schema(operation_id="widget_transcript", tags=["widget"], responses={200: TranscriptAnswer, **_REFUSED})
    def get(self, request: Request, key: str, request_id: UUID) -> Response:
        visitor = present_visitor(request, key)
        with tenant_scope(visitor.tenant_id):
            row = transcripts.asked(visitor.session_id, request_id)
        return Response({"id": row.pk, "state": row.state}, headers=_NOT_STORED)


class RatingBody(RequestSerializer):
    score = serializers.IntegerField(min_value=1, max_value=5, help_text="Of thumbs: 1 is down, 5 is up")
    comment = serializers.CharField(max_length=1000, allow_blank=True, required=False, default="")


class RatingAnswer(serializers.Serializer[Any]):
    score = serializers.IntegerField(allow_null=True, help_text="Null as long as nobody rated")
    comment = serializers.CharField(allow_blank=True)


class WidgetRating(APIView):
    """How it was: one rating a conversation, changeable for a day."""

    @extend_schema(operation_id="widget_rating", tags=["widget"], responses={200: RatingAnswer, **_REFUSED})
    def get(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        with tenant_scope(visitor.tenant_id):
            row = ratings.rating_of(visitor.session_id)
        shown = {"score": row.score, "comment": row.comment} if row else {"score": None, "comment": ""}
        return Response(shown, headers=_NOT_STORED)

    @extend_schema(
        operation_id="widget_rate", tags=["widget"], request=RatingBody, responses={200: RatingAnswer, **_REFUSED}
    )
    def put(self, request: Request, key: str) -> Response:
        visitor = present_visitor(request, key)
        wanted = RatingBody(data=request.data)
        wanted.is_valid(raise_exception=True)
        ratelimit.count("rate", visitor.session_id, most=20, address=address_of(request), most_there=120, seconds=600)
        with tenant_scope(visitor.tenant_id):
            row = ratings.rate(visitor.session_id, **wanted.validated_data)
        return Response({"score": row.score, "comment": row.comment}, headers=_NOT_STORED)


def present_visitor(request: Request, key: str) -> Visitor:
    """Whose token this is. Raises 401, and `NotFound` where the deployment is not open any more."""
    visitor = visitor_of(request, key)
    with tenant_scope(visitor.tenant_id):
        deployment = session_by_id(visitor.session_id).deployment
    if not deployment.enabled or deployment.public_key != visitor.deployment_key:
        raise NotFound()
    return visitor


def _reader(request: Request, key: str) -> tuple[articles.Reader, str]:
    """Who reads articles, and as whom their requests are counted: a conversation, or an address that has none yet; ""
    where that address is everyone's. Raises 401 for a token that is no longer good, and else as `deployment_for`."""
    if "Authorization" not in request.headers:
        deployment, address = deployment_for(request, key), address_of(request)
        whom = "" if is_own_machine(address) else f"{deployment.pk}:{address_key(address)}"
        return articles.Reader(deployment), whom
    visitor = present_visitor(request, key)
    return articles.reader_of(visitor.tenant_id, visitor.session_id), str(visitor.session_id)


def _require_offered(visitor: Visitor, what: str) -> VisitorOffers:
    offered = offers.offers_of(session_by_id(visitor.session_id).deployment_id)
    if not getattr(offered, what):
        raise NotFound()
    return offered


def _refuse_endless(request: Request) -> None:
    """Before the body is taken apart. Raises 413 `file_too_large`."""
    most = MOST_MEGABYTES * 1024 * 1024
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not length.isdecimal() or int(length) > most + 64 * 1024:
        raise SilasError(ErrorCode.FILE_TOO_LARGE, extra={"most_bytes": most})


def _shown(row: VisitorFile) -> dict[str, Any]:
    return {"file_id": row.pk, "seq": row.seq, "name": row.name, "kind": row.kind, "size": row.size}


def _listed(place: int, listed: ListedConversation) -> dict[str, Any]:
    row = listed.session
    return {
        "place": place,
        "session_id": row.pk,
        "preview": row.preview,
        "sender": row.last_sender,
        "last_active_at": row.last_active_at,
        "seq": row.seq,
        "unread": listed.unread,
        "needs_answer": listed.needs_answer,
        "awaits_approval": listed.awaits_approval,
    }
