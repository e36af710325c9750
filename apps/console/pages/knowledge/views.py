"""Knowledge: collections, their documents and imports, and testing a question.

Owners import and delete documents; approvers view them and test questions.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Count, Max
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.access.rules import PUBLIC
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.knowledge.uploads import Upload, idempotency_key_of
from apps.knowledge import intake
from apps.knowledge.gaps import open_count
from apps.knowledge.models import Chunk, Collection, Document, DocumentVersion, Intake, SearchSettings
from apps.knowledge.services import forget_document, open_collection, refresh_collection
from apps.sessions.retrieval import LONGEST_QUESTION, all_levels, try_question
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope

SHOWN, SHOWN_INTAKES = 100, 30


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    return _listing(request)


@require_POST
@staff_view(Role.OWNER)
def new(request: StaffRequest) -> HttpResponseBase:
    """Create a collection; an existing name opens that collection."""
    name, title = request.POST.get("name", "").strip(), request.POST.get("title", "")[:120].strip()
    level = request.POST.get("level", PUBLIC)
    if level not in all_levels():
        raise NotFound()
    try:
        collection = open_collection(name, min_level=level, title=title, actor=request.member.user.actor)
    except SilasError as refusal:
        return _listing(request, refusal=refusal, status=422)
    return redirect("console-collection", collection.pk)


@require_safe
@staff_view(*DECIDING_ROLES)
def collection(request: StaffRequest, collection_id: UUID) -> HttpResponseBase:
    home = _home(collection_id)
    return _collection(request, home)


@require_POST
@staff_view(Role.OWNER)
def hand_in(request: StaffRequest, collection_id: UUID) -> HttpResponseBase:
    home = _home(collection_id)
    refusal = Upload(request).into(home.pk)
    return _collection(request, home, refusal=refusal) if refusal else redirect("console-collection", home.pk)


@require_safe
@staff_view(*DECIDING_ROLES)
def document(request: StaffRequest, document_id: UUID) -> HttpResponseBase:
    """Show a document, and what deleting it would remove."""
    row = _document(document_id)
    chunks = Chunk.objects.filter(version__document=row)
    newest = DocumentVersion.objects.filter(document=row).order_by("-number").first()
    return page(
        request,
        "console/document.html",
        at="knowledge",
        row=row,
        newest=newest,
        versions=DocumentVersion.objects.filter(document=row).count(),
        passages=chunks.count(),
        text=newest.text[:4000] if newest else "",
        more=bool(newest and len(newest.text) > 4000),
    )


@require_POST
@staff_view(Role.OWNER)
def read_again(request: StaffRequest, document_id: UUID) -> HttpResponseBase:
    row = _document(document_id)
    intake.refresh_document(row.pk, once=idempotency_key_of(request), actor=request.member.user.actor)
    return redirect("console-collection", row.collection_id)


@require_POST
@staff_view(Role.OWNER)
def forget(request: StaffRequest, document_id: UUID) -> HttpResponseBase:
    row = _document(document_id)
    forget_document(row.pk, actor=request.member.user.actor)
    refresh_collection(row.collection_id)
    return redirect("console-collection", row.collection_id)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def tester(request: StaffRequest) -> HttpResponseBase:
    """Test a question, outside of any scope because it is embedded first. POST keeps it out of addresses."""
    question = request.POST.get("question", "")[:LONGEST_QUESTION].replace("\0", " ").strip()
    chosen, level = request.POST.get("deployment", ""), request.POST.get("level", PUBLIC)
    tried = None
    if question and chosen:
        tried = try_question(request.member.tenant.pk, require_id(chosen), question, level=level)
    with tenant_scope(request.member.tenant):
        places = list(Deployment.objects.order_by("created_at"))
        context: dict[str, Any] = {
            "places": places,
            "chosen": chosen,
            "level": level,
            "question": question,
            "tried": tried,
        }
        return page(request, "console/tester.html", at="knowledge", levels=all_levels(), **context).render()


def _listing(request: StaffRequest, *, refusal: SilasError | None = None, status: int = 200) -> HttpResponseBase:
    rows = Collection.objects.annotate(many=Count("documents"), newest=Max("documents__updated_at"))
    waiting = Intake.objects.filter(ended_at=None).count()
    return page(
        request,
        "console/knowledge.html",
        at="knowledge",
        status=status,
        rows=rows,
        waiting=waiting,
        gaps=open_count(),
        search_problem=SearchSettings.objects.exclude(problem="").exists(),
        levels=all_levels(),
        refusal=refusal,
    )


def _collection(request: StaffRequest, home: Collection, *, refusal: SilasError | None = None) -> HttpResponseBase:
    found = Document.objects.filter(collection=home).annotate(passages=Count("versions__chunks"))
    documents = list(found.order_by("-updated_at", "pk")[: SHOWN + 1])
    rows = list(Intake.objects.filter(collection=home).defer("content").order_by("-created_at")[:SHOWN_INTAKES])
    return page(
        request,
        "console/collection.html",
        at="knowledge",
        status=422 if refusal else 200,
        home=home,
        documents=documents[:SHOWN],
        more=len(documents) > SHOWN,
        intakes=rows,
        busy=any(row.ended_at is None for row in rows),
        kinds=",".join(intake.KINDS),
        refusal=refusal,
    )


def _home(collection_id: UUID) -> Collection:
    row: Collection | None = Collection.objects.filter(pk=collection_id).first()
    if row is None:
        raise NotFound()
    return row


def _document(document_id: UUID) -> Document:
    row: Document | None = Document.objects.select_related("collection").filter(pk=document_id).first()
    if row is None:
        raise NotFound()
    return row
