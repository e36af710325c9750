"""REST API for owners of documents and their versions, of what is handed in to a collection, and of the models that
search."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from django.db.models import Count
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.knowledge import intake, search_settings
from apps.knowledge.enums import IntakeKind, IntakeState
from apps.knowledge.models import Collection, Document, DocumentVersion, Intake
from apps.knowledge.services import forget_document, refresh_collection
from apps.tenants.api_auth import (
    IF_MATCH,
    OWNERS_REFUSALS,
    RESOURCE_REFUSALS,
    OwnersView,
    PageRequest,
    RequestSerializer,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.language import gettext
from kernel.pagination import read_page
from kernel.tenancy import tenant_scope

_BUSY = {400: OpenApiResponse(description="`invalid`; `knowledge_busy`: too much waits to be read")}


class DocumentAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    collection = serializers.UUIDField(source="collection_id")
    title = serializers.CharField()
    reference = serializers.CharField(source="source_ref", help_text="Where it came from")
    url = serializers.CharField(help_text="Where visitors find it; may be empty")
    source = serializers.UUIDField(  # type: ignore[assignment]  # hides the serializer's own attribute
        source="source_id", allow_null=True, help_text="The source that brought it"
    )
    passages = serializers.IntegerField(help_text="How many of its passages are searched")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class DocumentsAnswer(serializers.Serializer[object]):
    documents = DocumentAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class DocumentVersionAnswer(serializers.Serializer[object]):
    number = serializers.IntegerField()
    sha256 = serializers.CharField(help_text="Of its text as UTF-8")
    created_at = serializers.DateTimeField()


class DocumentDetail(DocumentAnswer):
    versions = DocumentVersionAnswer(many=True, help_text="Newest first; citations refer to them for ever")


class DocumentVersionDetail(DocumentVersionAnswer):
    text = serializers.CharField()


class SubmissionAnswer(serializers.Serializer[object]):
    id = serializers.UUIDField()
    collection = serializers.UUIDField(source="collection_id")
    kind = serializers.ChoiceField(choices=IntakeKind.choices)
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=IntakeState.choices)
    done = serializers.IntegerField(help_text="Pages that are read, of `total`")
    total = serializers.IntegerField()
    stored = serializers.IntegerField(help_text="How many documents came of it")
    problems = serializers.JSONField(help_text="What could not be read, each with the reason")
    by = serializers.CharField(help_text="As an actor of the audit log")
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class SubmissionsAnswer(serializers.Serializer[object]):
    submissions = SubmissionAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class SubmissionRequest(RequestSerializer):
    title = serializers.CharField(required=False, max_length=200, help_text="Of a text, which is known by it")
    text = serializers.CharField(required=False, max_length=intake.MAX_TEXT_LENGTH)
    website = serializers.CharField(required=False, max_length=600, help_text="An address; the pages below it are read")
    file = serializers.FileField(required=False, help_text=f"In `multipart/form-data`: {', '.join(intake.KINDS)}")

    def validate(self, attrs: dict[str, object]) -> dict[str, object]:
        if sorted(attrs) not in (["file"], ["text", "title"], ["website"]):
            raise serializers.ValidationError(gettext("Send a title and a text, a website, or a file."))
        return attrs


class SearchModelsRequest(RequestSerializer):
    deployment = serializers.UUIDField(help_text="The chatbot whose keys are used and whose budget pays")
    embedding = serializers.CharField(max_length=120, allow_blank=True, help_text="Empty: the built-in way alone")
    reranker = serializers.CharField(max_length=120, allow_blank=True, help_text="Empty: none")


class SearchModelsAnswer(serializers.Serializer[object]):
    deployment = serializers.UUIDField(source="deployment_id", allow_null=True)
    embedding = serializers.CharField(source="embedding_model")
    reranker = serializers.CharField()
    embedded = serializers.IntegerField(help_text="Passages and memories that have a vector, of `total`")
    total = serializers.IntegerField()
    problem = serializers.CharField(help_text="Why the provider was of no use last; empty while it is")


class _KnowledgeView(OwnersView):
    reading, writing = KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE


class Documents(_KnowledgeView):
    @extend_schema(
        operation_id="documents_list",
        tags=["knowledge"],
        parameters=[PageRequest],
        responses={200: DocumentsAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, collection_id: UUID) -> Response:
        """List a collection's documents, the last changed first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            home = _collection(collection_id)
            rows = Document.objects.filter(collection=home).annotate(passages=Count("versions__chunks"))
            shown, following = read_page(rows, **values, moment="updated_at")
            return uncached(DocumentsAnswer({"documents": shown, "next": following}).data)


class Submissions(_KnowledgeView):
    parser_classes = (JSONParser, MultiPartParser)
    recognises_repeats = True

    @extend_schema(
        operation_id="submissions_list",
        tags=["knowledge"],
        parameters=[PageRequest],
        responses={200: SubmissionsAnswer, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, collection_id: UUID) -> Response:
        """List what was handed in to a collection and what became of it, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows = Intake.objects.filter(collection=_collection(collection_id)).defer("content")
            shown, following = read_page(rows, **values)
            return uncached(SubmissionsAnswer({"submissions": shown, "next": following}).data)

    @extend_schema(
        operation_id="submissions_create",
        tags=["knowledge"],
        request={"application/json": SubmissionRequest, "multipart/form-data": SubmissionRequest},
        responses={
            202: SubmissionAnswer,
            **RESOURCE_REFUSALS,
            **_BUSY,
            422: OpenApiResponse(description="`nothing_in_it`, `too_large`, `unsupported_type`, `website_address`"),
        },
    )
    def post(self, request: Request, collection_id: UUID) -> Response:
        """Hand in a text, a website or a file. It is read in the background."""
        sent = validated(SubmissionRequest, request.data)
        by: Any = {"once": self.once, "actor": self.caller.actor}
        with tenant_scope(self.caller.tenant_id):
            if "file" in sent:
                # One byte more than is taken is enough to refuse it.
                data = sent["file"].read(intake.MAX_UPLOAD_BYTES + 1)
                row = intake.submit_file(collection_id, name=sent["file"].name, data=data, **by)
            elif "website" in sent:
                row = intake.submit_website(collection_id, address=sent["website"], **by)
            else:
                row = intake.submit_text(collection_id, title=sent["title"], text=sent["text"], **by)
            return uncached(SubmissionAnswer(row).data, status.HTTP_202_ACCEPTED)


class OneSubmission(_KnowledgeView):
    @extend_schema(
        operation_id="submissions_get", tags=["knowledge"], responses={200: SubmissionAnswer, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, submission_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            row = Intake.objects.filter(pk=submission_id).defer("content").first()
            if row is None:
                raise NotFound()
            return uncached(SubmissionAnswer(row).data)


class OneDocument(_KnowledgeView):
    @extend_schema(
        operation_id="documents_get", tags=["knowledge"], responses={200: DocumentDetail, **RESOURCE_REFUSALS}
    )
    def get(self, request: Request, document_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            row = _document(document_id)
            versions = DocumentVersion.objects.filter(document=row).defer("text").order_by("-number")
            detail = {**DocumentAnswer(row).data, "versions": DocumentVersionAnswer(versions, many=True).data}
            return uncached(detail)

    @extend_schema(operation_id="documents_delete", tags=["knowledge"], responses={204: None, **RESOURCE_REFUSALS})
    def delete(self, request: Request, document_id: UUID) -> Response:
        """Delete a document with all its versions; its citations open nothing any more."""
        with tenant_scope(self.caller.tenant_id):
            row = _document(document_id)
            forget_document(row.pk, actor=self.caller.actor)
            refresh_collection(row.collection_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OneVersion(_KnowledgeView):
    @extend_schema(
        operation_id="document_versions_get",
        tags=["knowledge"],
        responses={200: DocumentVersionDetail, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, document_id: UUID, number: int) -> Response:
        """Read the text of one version."""
        with tenant_scope(self.caller.tenant_id):
            row = DocumentVersion.objects.filter(document_id=document_id, number=number).first()
            if row is None:
                raise NotFound()
            return uncached(DocumentVersionDetail(row).data)


class RefreshDocument(_KnowledgeView):
    recognises_repeats = True

    @extend_schema(
        operation_id="documents_refresh",
        tags=["knowledge"],
        request=None,
        responses={202: SubmissionAnswer, **RESOURCE_REFUSALS, **_BUSY},
    )
    def post(self, request: Request, document_id: UUID) -> Response:
        """Fetch a web page again; split and embed any other document again."""
        with tenant_scope(self.caller.tenant_id):
            row = intake.refresh_document(document_id, once=self.once, actor=self.caller.actor)
            return uncached(SubmissionAnswer(row).data, status.HTTP_202_ACCEPTED)


class SearchModels(_KnowledgeView):
    @extend_schema(
        operation_id="search_models_get", tags=["knowledge"], responses={200: SearchModelsAnswer, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """Read which models search the knowledge, and how far embedding is."""
        return with_etag(self._shown())

    @extend_schema(
        operation_id="search_models_set",
        tags=["knowledge"],
        request=SearchModelsRequest,
        parameters=[IF_MATCH],
        responses={
            200: SearchModelsAnswer,
            **RESOURCE_REFUSALS,
            412: OpenApiResponse(description="`changed_meanwhile`: not at the version of `If-Match`"),
            422: OpenApiResponse(description="`search_model`: the model cannot be used"),
        },
    )
    def put(self, request: Request) -> Response:
        """Choose the models. A new embedding model is tried with one text first, at the chatbot's expense."""
        sent = validated(SearchModelsRequest, request.data)
        require_unchanged(request, self._shown())
        place = sent.pop("deployment")
        asyncio.run(search_settings.choose(self.caller.tenant_id, place, **sent, actor=self.caller.actor))
        return with_etag(self._shown())

    def _shown(self) -> dict[str, object]:
        with tenant_scope(self.caller.tenant_id):
            row = search_settings.current()
        nothing = {"deployment_id": None, "embedding_model": "", "reranker": "", "embedded": 0, "total": 0}
        return dict(SearchModelsAnswer(row or {**nothing, "problem": ""}).data)


def _collection(collection_id: UUID) -> Collection:
    row = Collection.objects.filter(pk=collection_id).first()
    if row is None:
        raise NotFound()
    return row


def _document(document_id: UUID) -> Document:
    """With the number of its passages."""
    row = Document.objects.annotate(passages=Count("versions__chunks")).filter(pk=document_id).first()
    if row is None:
        raise NotFound()
    return row
