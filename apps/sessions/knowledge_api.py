"""REST API for owners of collections, and the search with passages as a chatbot's visitors have it.

It stands here because the access levels that collections and a search name are those of conversations.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count, Max, QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.access.rules import PUBLIC
from apps.knowledge.models import Collection
from apps.knowledge.services import open_collection
from apps.sessions.retrieval import LONGEST_QUESTION, all_levels, try_question
from apps.tenants.api_auth import (
    RESOURCE_REFUSALS,
    OwnersView,
    PageRequest,
    RequestSerializer,
    uncached,
    validated,
)
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope


class CollectionAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    title = serializers.CharField()
    level = serializers.CharField(source="min_level", help_text="The lowest access level that may read it")
    documents = serializers.IntegerField(source="many")
    updated_at = serializers.DateTimeField(source="newest", allow_null=True, help_text="Of its documents")
    created_at = serializers.DateTimeField()


class CollectionsAnswer(serializers.Serializer[object]):
    collections = CollectionAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class CollectionRequest(RequestSerializer):
    name = serializers.CharField(max_length=60, help_text="Letters, digits, hyphens and underscores")
    title = serializers.CharField(max_length=120, allow_blank=True, default="")
    level = serializers.CharField(max_length=40, default=PUBLIC, help_text="An access level of one of your chatbots")


class SearchRequest(RequestSerializer):
    question = serializers.CharField(max_length=LONGEST_QUESTION)
    deployment = serializers.UUIDField(help_text="As whose visitor is searched")
    level = serializers.CharField(max_length=40, default=PUBLIC, help_text="The visitor's access level")


class FoundPassage(serializers.Serializer[object]):
    document = serializers.UUIDField(source="passage.document_id")
    version = serializers.UUIDField(source="passage.version_id")
    title = serializers.CharField(source="passage.title")
    url = serializers.CharField(source="passage.url")
    text = serializers.CharField(source="passage.quote")
    start = serializers.IntegerField(source="passage.start", help_text="Byte offset into the version's text")
    end = serializers.IntegerField(source="passage.end")
    nearness = serializers.IntegerField(help_text="How near in meaning, in percent; the order says which is best")
    citation = serializers.CharField(source="quote", help_text="What the built-in model would cite of it; may be empty")


class SearchAnswer(serializers.Serializer[object]):
    passages = FoundPassage(source="found", many=True, help_text="Best first")
    answers = serializers.BooleanField(help_text="Whether a chatbot would answer from them")


class Collections(OwnersView):
    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="collections_list",
        tags=["knowledge"],
        parameters=[PageRequest],
        responses={200: CollectionsAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List collections, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            shown, following = read_page(_collections(), **values)
            return uncached(CollectionsAnswer({"collections": shown, "next": following}).data)

    @extend_schema(
        operation_id="collections_create",
        tags=["knowledge"],
        request=CollectionRequest,
        responses={
            201: CollectionAnswer,
            **RESOURCE_REFUSALS,
            400: OpenApiResponse(description="`invalid`; `invalid_name`"),
        },
    )
    def post(self, request: Request) -> Response:
        """Create a collection; the one that has the name already is answered as it is."""
        sent = validated(CollectionRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            if sent["level"] not in all_levels():
                raise NotFound()
            made = open_collection(sent["name"], min_level=sent["level"], title=sent["title"], actor=self.caller.actor)
            return uncached(CollectionAnswer(_collections().get(pk=made.pk)).data, status.HTTP_201_CREATED)


class OneCollection(OwnersView):
    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE

    @extend_schema(
        operation_id="collections_get", tags=["knowledge"], responses={200: CollectionAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, collection_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            row = _collections().filter(pk=collection_id).first()
            if row is None:
                raise NotFound()
            return uncached(CollectionAnswer(row).data)


class Search(OwnersView):
    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_READ

    @extend_schema(
        operation_id="knowledge_search",
        tags=["knowledge"],
        request=SearchRequest,
        responses={200: SearchAnswer, **RESOURCE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Find the passages from which a chatbot would answer a question. A POST keeps it out of addresses."""
        sent = validated(SearchRequest, request.data)
        tried = try_question(self.caller.tenant_id, sent["deployment"], sent["question"], level=sent["level"])
        return uncached(SearchAnswer(tried).data)


def _collections() -> QuerySet[Collection]:
    rows: QuerySet[Collection] = Collection.objects.annotate(
        many=Count("documents"), newest=Max("documents__updated_at")
    )
    return rows
