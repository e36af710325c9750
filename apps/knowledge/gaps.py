"""Gaps in the knowledge: questions that were not answered, clustered into topics that a member answers.

Questions are recorded scrubbed, in the transaction of the turn or rating that shows the gap, and clustered by a job on
the queue `trusted` (`handle_clustering`). Always: one visitor counts once in a topic, however often they ask; a
question's words stay a visitor's text, and reach documents only as part of what an approver has read on a card. All
functions run inside a scope unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Count, Max, Q

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Withdrawal
from apps.approvals.locks import lock_open_cards
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.queries import latest_card_about
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.gates.detectors.catalogue import detects
from apps.knowledge import gap_matching, intake, queries
from apps.knowledge.enums import GapReason, GapStatus
from apps.knowledge.gap_matching import Candidate
from apps.knowledge.models import Collection as DocumentCollection
from apps.knowledge.models import GapQuestion, GapTopic
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.stored_texts import stored_text
from kernel.tenancy import before_commit, current_tenant_id, in_thread, tenant_scope
from kernel.unicode_safety import escape_hidden, replace_unstorable, truncate
from llm import embedding
from llm.briefing import Passage
from llm.embedding import Vector
from llm.offline import answers
from llm.offline.words import content, words

SUBJECT = "knowledge_gap"
PUBLISH = "publish"
INTERVAL = timedelta(minutes=10)
MAX_TOPICS, MAX_QUESTIONS, MAX_IN_CONVERSATION = 500, 10_000, 20
MAX_ANSWER_LENGTH = 8000
SIMILAR_FROM = 0.4
_LEAST_WORDS, _LONGEST, _BATCH, _PASSAGES = 3, 600, 200, 4
_SINCE = datetime(2000, 1, 1, tzinfo=UTC)
_CARD_SECONDS = 14 * 86_400


@dataclass(frozen=True)
class Suggestion:
    """What the documents have on a question: the nearest passages, and their sentences that may answer it, or ""."""

    passages: tuple[Passage, ...]
    draft: str


# Questions


def record_question(session_id: UUID, text: str, *, asker: str, reason: GapReason) -> bool:
    """Record a scrubbed question with this scope's commit; False for a text that is too short to be a question, or that
    looks like instructions to the assistant.

    `asker` tells visitors apart: a customer's id, or the conversation's. The same words are recorded once for each
    conversation. Clustering is enqueued once for each interval.
    """
    question = " ".join(replace_unstorable(text).split())[:_LONGEST]
    meaning = sorted(content(question))
    if len(words(question)) < _LEAST_WORDS or not meaning or detects("jailbreak", question):
        return False
    row = GapQuestion(
        tenant_id=current_tenant_id(),
        session_id=session_id,
        asker=sha256_hex(asker),
        text=question,
        digest=sha256_hex(" ".join(meaning)),
        reason=reason,
        asked_at=now(),
    )
    before_commit(_store_questions, row)
    # Every process reckons the same end, so that one interval has one message.
    ends = _SINCE + ((now() - _SINCE) // INTERVAL + 1) * INTERVAL
    message_id = f"{Kind.GAP_CLUSTERING.value}:{ends.isoformat()}"
    enqueue(Kind.GAP_CLUSTERING, scope_id=current_tenant_id(), message_id=message_id, due_at=ends)
    return True


def withdraw_rating(session_id: UUID) -> None:
    """Delete the questions of a conversation whose visitor no longer rates it badly."""
    delete_questions(Q(session_id=session_id, reason=GapReason.BADLY_RATED))


def forget_conversations(session_ids: Collection[UUID]) -> int:
    """Delete what was asked in these conversations, and topics that consist of nothing else; returns how many
    questions."""
    return delete_questions(Q(session_id__in=session_ids))


def _store_questions(rows: list[GapQuestion]) -> None:
    sessions = {row.session_id for row in rows}
    counted = GapQuestion.objects.filter(session_id__in=sessions).values("session_id").annotate(many=Count("pk"))
    full = {each["session_id"] for each in counted.order_by() if each["many"] >= MAX_IN_CONVERSATION}
    kept = [row for row in rows if row.session_id not in full]
    GapQuestion.objects.bulk_create(kept, ignore_conflicts=True)


def delete_questions(which: Q) -> int:
    questions = list(GapQuestion.objects.filter(which).order_by())
    if not questions:
        return 0
    topic_ids = {row.topic_id for row in questions if row.topic_id is not None}
    # A topic that keeps no question is deleted, and its card withdrawn. Cards before topics: who decides a card locks
    # the card first.
    lock_open_cards(subject_kind=SUBJECT, subject_id__in=topic_ids)
    locked = _lock_topics(Q(pk__in=topic_ids))
    GapQuestion.objects.filter(pk__in=[row.pk for row in questions]).delete()
    _recount(locked)
    return len(questions)


# Clustering


async def handle_clustering(delivery: Delivery) -> None:
    """Cluster what was asked since the last run. Run again after a crash, it continues."""
    await in_thread(cluster_new_questions, delivery.tenant_id)


def cluster_new_questions(tenant_id: UUID) -> None:
    """Add every new question to the topic it belongs to, oldest first, or open one. Opens its own scopes."""
    while True:
        with tenant_scope(tenant_id):
            batch = list(GapQuestion.objects.filter(topic=None).order_by("asked_at", "pk")[:_BATCH])
        if not batch:
            break
        vectors = embedding.embed_all([row.text for row in batch])
        with tenant_scope(tenant_id):
            _assign({row.pk: vector for row, vector in zip(batch, vectors, strict=True)})
    with tenant_scope(tenant_id):
        _make_room()


def _assign(vectors: dict[UUID, Vector | None]) -> None:
    topics = _lock_topics(Q())
    rows = GapQuestion.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=vectors, topic=None)
    askers: dict[UUID, set[str]] = {}
    for topic_id, asker in GapQuestion.objects.exclude(topic=None).order_by().values_list("topic_id", "asker"):
        askers.setdefault(topic_id, set()).add(asker)
    touched: dict[UUID, GapTopic] = {}
    for row in rows.order_by("asked_at", "pk"):
        vector = vectors[row.pk]
        if vector is None:
            row.delete()
            continue
        candidates = [Candidate([float(value) for value in topic.centroid], topic.question) for topic in topics]
        index = gap_matching.find_topic(row.text, vector, candidates)
        if index is None:
            topic = GapTopic(question=row.text, centroid=vector, first_at=row.asked_at, last_at=row.asked_at)
            topic.save()
            topics.append(topic)
        else:
            topic = topics[index]
            known = askers.get(topic.pk, set())
            if row.asker not in known:
                topic.centroid = gap_matching.moved_centroid(candidates[index].centroid, len(known), vector)
        askers.setdefault(topic.pk, set()).add(row.asker)
        touched[topic.pk] = topic
        row.topic = topic
        row.save(update_fields=["topic"])
    for topic in touched.values():
        topic.save(update_fields=["centroid"])
    _recount(touched.values())


def _recount(topics: Iterable[GapTopic]) -> None:
    """Bring topics in line with their questions. One that was asked again after its answer is open again; one without
    questions is deleted."""
    for topic in topics:
        questions = GapQuestion.objects.filter(topic=topic)
        first = questions.order_by("asked_at", "pk").first()
        if first is None:
            withdraw_cards_about(SUBJECT, topic.pk, reason=Withdrawal.REQUESTER)
            topic.delete()
            continue
        since = questions.filter(asked_at__gt=topic.answered_at) if topic.answered_at else questions
        visitors = since.order_by().aggregate(many=Count("asker", distinct=True))["many"]
        last_at = questions.order_by().aggregate(last=Max("asked_at"))["last"]
        status = GapStatus.OPEN if topic.status == GapStatus.ANSWERED and visitors else topic.status
        changes = {"visitors": visitors, "status": status, "question": first.text}
        GapTopic.objects.filter(pk=topic.pk).update(first_at=first.asked_at, last_at=last_at, **changes)


def _make_room() -> None:
    """Keep both tables bounded: the oldest questions go first, then topics that fewest visitors asked about."""
    old = GapQuestion.objects.exclude(topic=None).order_by("-asked_at", "pk").values_list("pk", flat=True)
    surplus = list(old[MAX_QUESTIONS : MAX_QUESTIONS + 1000])
    if surplus:
        delete_questions(Q(pk__in=surplus))
    undrafted = ~Q(status=GapStatus.DRAFTED)
    rare = GapTopic.objects.filter(undrafted).order_by("-visitors", "-last_at", "pk")
    # Chosen again under the locks: a draft's card may have opened since.
    locked = _lock_topics(Q(pk__in=list(rare.values_list("pk", flat=True)[MAX_TOPICS:])) & undrafted)
    GapTopic.objects.filter(pk__in=[topic.pk for topic in locked]).delete()


# What members do


def open_count() -> int:
    """How many topics wait for an answer."""
    return int(GapTopic.objects.filter(status=GapStatus.OPEN).count())


def suggest(tenant_id: UUID, question: str, *, levels: Collection[str]) -> Suggestion:
    """What the documents of these levels have on a question. Opens its own scope, after the question is embedded."""
    vector = embedding.embed(queries.search_text(question))
    with tenant_scope(tenant_id):
        passages = queries.search(question, vector=vector, levels=levels, k=_PASSAGES)
    finding = answers.find(question, passages)
    quotes = [citation.quote.strip() for citation in finding.citations] if finding.is_worth_showing else []
    return Suggestion(passages, "\n\n".join(quotes))


def nearest_passages(topic: GapTopic, *, levels: Collection[str]) -> tuple[Passage, ...]:
    """The passages that are nearest to the questions of a topic, without embedding them again. In a scope."""
    return queries.search(topic.question, vector=_floats(topic.centroid), levels=levels, k=_PASSAGES)


def similar_topics(topic: GapTopic, *, most: int = 5) -> list[GapTopic]:
    """Topics that may be about the same, most similar first."""
    others = list(GapTopic.objects.exclude(pk=topic.pk).exclude(status=GapStatus.DISMISSED))
    if not others:
        return []
    near = gap_matching.similarities(_floats(topic.centroid), [_floats(other.centroid) for other in others])
    ranked = sorted(zip(near, others, strict=True), key=lambda pair: -pair[0])
    return [other for similarity, other in ranked[:most] if similarity >= SIMILAR_FROM]


def propose_answer(topic_id: UUID, *, title: str, text: str, collection_id: UUID, actor: str) -> GapTopic:
    """Write an answer and ask for its approval; it is published when its card is approved. Replaces an earlier draft.

    Raises `NotFound`, `SilasError`: draft_changed, gap_settled 409, nothing_in_it, too_large 422.
    """
    title, text = replace_unstorable(" ".join(title.split()))[:200], replace_unstorable(text).strip()
    if not title or not text:
        raise SilasError(ErrorCode.NOTHING_IN_IT, gettext("Add a title and an answer."))
    if len(text) > MAX_ANSWER_LENGTH:
        raise SilasError(
            ErrorCode.TOO_LARGE, gettext("Write at most {longest} characters.").format(longest=MAX_ANSWER_LENGTH)
        )
    collection = DocumentCollection.objects.filter(pk=collection_id).first()
    if collection is None:
        raise NotFound()
    topic = _withdraw_draft(topic_id, actor=actor)
    if topic.status not in (GapStatus.OPEN, GapStatus.DRAFTED):
        raise SilasError(ErrorCode.GAP_SETTLED)
    topic.title, topic.answer, topic.collection = title, text, collection
    topic.card_id, topic.status = _open_card(topic, collection, actor).pk, GapStatus.DRAFTED
    topic.save(update_fields=["title", "answer", "collection", "card_id", "status"])
    _audit(topic, "draft", actor)
    return topic


def dismiss_topic(topic_id: UUID, *, actor: str) -> GapTopic:
    """Put a topic aside: it stays so, however often it is asked about. Safe to repeat. Raises `NotFound`,
    `SilasError("draft_changed")` 409."""
    return _settle(topic_id, GapStatus.DISMISSED, "dismiss", actor)


def reopen_topic(topic_id: UUID, *, actor: str) -> GapTopic:
    """Open an answered or dismissed topic again; a draft's card is withdrawn. Safe to repeat. Raises `NotFound`,
    `SilasError("draft_changed")` 409."""
    return _settle(topic_id, GapStatus.OPEN, "reopen", actor)


def merge_topics(topic_id: UUID, *, into_id: UUID, actor: str) -> GapTopic:
    """Move a topic's questions into another one and delete it; its draft's card is withdrawn. Raises `NotFound`,
    `SilasError("draft_changed")` 409."""
    if topic_id == into_id:
        raise NotFound()
    withdraw_cards_about(SUBJECT, topic_id, reason=Withdrawal.REPLACED, actor=actor)
    rows = {row.pk: row for row in _lock_topics(Q(pk__in=[topic_id, into_id]))}
    if len(rows) != 2:
        raise NotFound()
    _require_no_card(topic_id)
    topic, into = rows[topic_id], rows[into_id]
    GapQuestion.objects.filter(topic=topic).update(topic=into)
    topic.delete()
    _recount([into])
    _audit(into, "merge", actor)
    into.refresh_from_db()
    return into


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Publish the answer that was approved, or open the topic again. Does nothing for a card that was replaced."""
    topic = _topic_of(card)
    if topic is None:
        return
    actor = f"user:{decision.user.pk}"
    approved = decision.verdict == ApprovalVerdict.APPROVED and decision.said.get("choice") == PUBLISH
    if not approved or topic.collection_id is None or card.details.get("draft") != _digest(topic):
        _reopen_draft(topic)
        _audit(topic, "decline", actor)
        return
    reference = f"answers/{topic.pk}"
    intake.submit_text(
        topic.collection_id, title=topic.title, text=topic.answer, reference=reference, once=card.pk, actor=actor
    )
    moment = now()
    GapTopic.objects.filter(pk=topic.pk).update(status=GapStatus.ANSWERED, answered_at=moment, visitors=0)
    _audit(topic, "publish", actor)


def end_draft(card: Card) -> None:
    """Open the topic again whose card expired or was withdrawn; what was written is kept."""
    topic = _topic_of(card)
    if topic is not None:
        _reopen_draft(topic)


def _settle(topic_id: UUID, status: GapStatus, verb: str, actor: str) -> GapTopic:
    topic = _withdraw_draft(topic_id, actor=actor)
    if topic.status != status:
        topic.status = status
        topic.save(update_fields=["status"])
        _audit(topic, verb, actor)
    return topic


def _withdraw_draft(topic_id: UUID, *, actor: str) -> GapTopic:
    """Withdraw the card of the topic's draft, and return the topic, locked and without a card."""
    # Before the topic is locked: who decides a card locks the card first.
    withdraw_cards_about(SUBJECT, topic_id, reason=Withdrawal.STAFF, actor=actor)
    topic = _lock_topic(topic_id)
    _require_no_card(topic_id)
    return topic


def _require_no_card(topic_id: UUID) -> None:
    """Refuse to change the locked topic when a draft's card opened while the lock was awaited: it would be left without
    its topic, or beside another one."""
    card = latest_card_about(SUBJECT, topic_id)
    if card is not None and card.is_open:
        raise SilasError(ErrorCode.DRAFT_CHANGED)


def _reopen_draft(topic: GapTopic) -> None:
    GapTopic.objects.filter(pk=topic.pk).update(status=GapStatus.OPEN)


def _topic_of(card: Card) -> GapTopic | None:
    rows = _lock_topics(Q(pk=card.subject_id, card_id=card.pk, status=GapStatus.DRAFTED))
    return rows[0] if rows else None


def _lock_topic(topic_id: UUID) -> GapTopic:
    rows = _lock_topics(Q(pk=topic_id))
    if not rows:
        raise NotFound()
    return rows[0]


def _lock_topics(which: Q) -> list[GapTopic]:
    """Topics in the order of their age; locked in it, so that two processes wait in line."""
    rows = GapTopic.objects.select_for_update(of=("self",), no_key=True).filter(which)
    return list(rows.order_by("first_at", "pk"))


def _open_card(topic: GapTopic, collection: DocumentCollection, actor: str) -> Card:
    facts = [Fact(stored_text("Title"), topic.title), Fact(EXACT_TEXT, topic.answer)]
    if detects("jailbreak", f"{topic.title}\n{topic.answer}"):
        warning = stored_text("The text contains what looks like instructions to the assistant.")
        facts.insert(0, Fact(stored_text("Warning"), warning))
    return open_card(
        CardKind.DECISION,
        subject=CardSubject(SUBJECT, topic.pk, requested_by=actor),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "question": stored_text("Publish this answer?"),
                "options": [{"label": stored_text("Publish answer"), "value": PUBLISH}],
            },
            reversible=True,
        ),
        text=CardText(
            intent=truncate(escape_hidden(stored_text("Publish an answer: {title}").format(title=topic.title)), 300),
            rationale=_rationale(topic.visitors),
            consequence={
                PUBLISH: stored_text("Publish it in {collection}").format(collection=str(collection)),
                "decline": stored_text("Don't publish it"),
            },
            facts=facts,
            details={"draft": _digest(topic)},
        ),
        seconds=_CARD_SECONDS,
    )


def _rationale(visitors: int) -> str:
    """Two texts, because a stored one has no plural forms."""
    if visitors <= 1:
        return stored_text("A visitor asked this and got no good answer. The bot will answer from this text.")
    return stored_text(
        "{count:d} visitors asked this and got no good answer. The bot will answer from this text."
    ).format(count=visitors)


def _digest(topic: GapTopic) -> str:
    """Of all that would be published: an approval holds for exactly this."""
    return sha256_hex("\n".join([str(topic.collection_id), topic.title, topic.answer]))


def _audit(topic: GapTopic, verb: str, actor: str) -> None:
    record(AuditEvent.GAP_CHANGED, actor=actor, subject=f"gap:{topic.pk}", data={"verb": verb})


def _floats(vector: Sequence[float]) -> Vector:
    return [float(value) for value in vector]
