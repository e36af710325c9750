"""Gaps: questions that visitors asked in vain, by topic. Owners and approvers propose answers and dismiss topics."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.knowledge import gaps
from apps.knowledge.enums import GapStatus
from apps.knowledge.gaps import Suggestion
from apps.knowledge.models import Collection, Document, GapQuestion, GapTopic
from apps.memory.memories import scrub
from apps.sessions.queries import first_staff_reply
from apps.sessions.retrieval import all_levels
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope

SHOWN, SHOWN_QUESTIONS = 100, 20
# A member's reply of at least this many characters is offered as a draft; shorter ones are greetings.
_SHORTEST_REPLY = 40


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    """List the topics of one status, those that most visitors asked about first."""
    status = request.GET.get("status", GapStatus.OPEN)
    if status not in GapStatus.values:
        raise NotFound()
    rows = list(GapTopic.objects.filter(status=status)[: SHOWN + 1])
    return page(
        request,
        "console/gaps.html",
        at="knowledge",
        rows=rows[:SHOWN],
        more=len(rows) > SHOWN,
        status=200,
        chosen=status,
        statuses=GapStatus.choices,
    )


@require_safe
@staff_view(*DECIDING_ROLES, scoped=False)
def gap(request: StaffRequest, topic_id: UUID) -> HttpResponseBase:
    """Show a topic with its questions, the nearest passages and a draft, outside of any scope because the question is
    embedded."""
    return _gap(request, topic_id)


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def answer(request: StaffRequest, topic_id: UUID) -> HttpResponseBase:
    """Propose an answer; its card opens."""
    title, text = request.POST.get("title", ""), request.POST.get("answer", "").replace("\r\n", "\n")
    collection_id = require_id(request.POST.get("collection", ""))
    try:
        with tenant_scope(request.member.tenant):
            topic = gaps.propose_answer(
                topic_id, title=title, text=text, collection_id=collection_id, actor=request.member.user.actor
            )
    except SilasError as refusal:
        if refusal.status not in (400, 409, 422):
            raise
        return _gap(request, topic_id, refusal=refusal, typed=(title, text))
    return redirect("console-card", topic.card_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def dismiss(request: StaffRequest, topic_id: UUID) -> HttpResponseBase:
    gaps.dismiss_topic(topic_id, actor=request.member.user.actor)
    return redirect("console-gaps")


@require_POST
@staff_view(*DECIDING_ROLES)
def reopen(request: StaffRequest, topic_id: UUID) -> HttpResponseBase:
    gaps.reopen_topic(topic_id, actor=request.member.user.actor)
    return redirect("console-gap", topic_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def merge(request: StaffRequest, topic_id: UUID) -> HttpResponseBase:
    """Merge this topic into another one."""
    into_id = require_id(request.POST.get("into", ""))
    gaps.merge_topics(topic_id, into_id=into_id, actor=request.member.user.actor)
    return redirect("console-gap", into_id)


def _gap(
    request: StaffRequest, topic_id: UUID, *, refusal: SilasError | None = None, typed: tuple[str, str] | None = None
) -> HttpResponseBase:
    with tenant_scope(request.member.tenant):
        topic = GapTopic.objects.filter(pk=topic_id).first()
        if topic is None:
            raise NotFound()
        levels = all_levels()
    suggestion = gaps.suggest(request.member.tenant.pk, topic.question, levels=levels)
    with tenant_scope(request.member.tenant):
        questions = list(GapQuestion.objects.filter(topic=topic)[: SHOWN_QUESTIONS + 1])
        reply = _staff_reply(questions)
        title, text = typed or (topic.title or topic.question[:200], topic.answer or reply or suggestion.draft)
        return page(
            request,
            "console/gap.html",
            at="knowledge",
            status=refusal.status if refusal else 200,
            row=topic,
            questions=questions[:SHOWN_QUESTIONS],
            more=len(questions) > SHOWN_QUESTIONS,
            passages=suggestion.passages,
            similar=gaps.similar_topics(topic),
            collections=list(Collection.objects.order_by("name")),
            collection_id=topic.collection_id or _nearest_collection(suggestion),
            title=title,
            answer=text,
            origin="" if typed or topic.answer else "reply" if reply else "documents" if suggestion.draft else "",
            may_answer=topic.status in (GapStatus.OPEN, GapStatus.DRAFTED),
            refusal=refusal,
        ).render()


def _staff_reply(questions: list[GapQuestion]) -> str:
    """What a member answered in one of the conversations, without personal data; the newest conversation first."""
    replies = (first_staff_reply(row.session_id, after=row.asked_at, least=_SHORTEST_REPLY) for row in questions[:5])
    return scrub(next(filter(None, replies), ""))


def _nearest_collection(suggestion: Suggestion) -> UUID | None:
    if not suggestion.passages:
        return None
    nearest = Document.objects.filter(pk=suggestion.passages[0].document_id)
    collection_id: UUID | None = nearest.values_list("collection_id", flat=True).first()
    return collection_id
