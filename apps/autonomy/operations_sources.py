"""What automations read of a company's daily work: conversations, promises, refunds, documents, memories, figures.

Reads for `run_playbook`, inside a scope, of the task's chatbot. Anonymous by construction: of conversations a worker
reads when and by whom something was said, ratings, labels and reasons, never a visitor's words or name; of memories no
text. The last line of staff or bot is scrubbed. What is read is new since the task's last completed run, except where a
state counts (who waits now, which refunds stand in the books).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet

from apps.autonomy.enums import ProposalState, SessionStatus
from apps.autonomy.models import AutonomousSession, MemoryProposal, OpenQuestion
from apps.autonomy.past_dates import outdated_sentences
from apps.autonomy.promises import promise_due
from apps.inbox.enums import DeskStatus
from apps.inbox.models import DeskState, SessionLabel
from apps.knowledge.models import DocumentVersion
from apps.memory.memories import scrub
from apps.memory.models import MemoryItem
from apps.sessions.enums import EntryKind, Sender, TurnStatus
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.skills.models import Record
from apps.visitors.models import Rating
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel.clock import now

FIRST_DAYS = 30
MOST_CONVERSATIONS, MOST_RECORDS, MOST_DOCUMENTS, MOST_ARTICLES, MOST_MEMORIES = 500, 2000, 200, 5, 1000
WAITS_TOO_LONG, WAITS_TOO_LONG_FOR_APPROVAL = timedelta(hours=4), timedelta(hours=24)
OLD_DOCUMENT, OLD_MEMORY, OLD_PROPOSAL = timedelta(days=365), timedelta(days=180), timedelta(days=14)
REFUND_DAYS = 90
_LONGEST_ARTICLE = 6000

Source = Callable[[Mapping[str, object], Mapping[str, object]], dict[str, object]]


def last_run_at(context: Mapping[str, Any]) -> datetime | None:
    """When the task's last completed run started; None for its first. Attempts of this occasion do not count."""
    session = AutonomousSession.objects.get(pk=context["session"])
    completed = AutonomousSession.objects.filter(task_id=session.task_id, status=SessionStatus.COMPLETED)
    earlier = completed.exclude(pk=session.origin).exclude(root_id=session.origin).exclude(started_at=None)
    started: datetime | None = earlier.order_by("-started_at").values_list("started_at", flat=True).first()
    return started


def _since(context: Mapping[str, object]) -> datetime:
    return last_run_at(context) or now() - timedelta(days=FIRST_DAYS)


def conversations(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the conversations in which something happened since the last run, newest first."""
    since = _since(context)
    rows = _conversations(context).filter(last_active_at__gt=since).order_by("-last_active_at")
    sessions = list(rows.values("pk", "created_at", "wanted_because")[:MOST_CONVERSATIONS])
    return {"since": since.isoformat(), "conversations": _facts(sessions), "left": max(rows.count() - len(sessions), 0)}


def _conversations(context: Mapping[str, Any]) -> QuerySet[ChatSession]:
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(
        deployment_id=context["deployment"], is_test=False, seq__gt=0
    )
    return rows


def _facts(sessions: list[Any]) -> list[dict[str, Any]]:
    ids = [session["pk"] for session in sessions]
    ratings = dict(Rating.objects.filter(session_id__in=ids).values_list("session_id", "score"))
    failed = dict(
        Turn.objects.filter(session_id__in=ids, status=TurnStatus.FAILED)
        .order_by()
        .values_list("session_id")
        .annotate(many=Count("pk"))
    )
    labels: dict[UUID, list[str]] = defaultdict(list)
    marked = SessionLabel.objects.filter(session_id__in=ids).order_by("label__name")
    for session_id, name in marked.values_list("session_id", "label__name"):
        labels[session_id].append(name)
    waits = _waits(ids)
    return [
        {
            "id": str(session["pk"]),
            "began": session["created_at"].isoformat(),
            "rating": ratings.get(session["pk"]),
            "because": session["wanted_because"],
            "labels": labels[session["pk"]],
            "failed": failed.get(session["pk"], 0),
            "waited_hours": waits.get(session["pk"]),
        }
        for session in sessions
    ]


def _waits(ids: list[UUID]) -> dict[UUID, float]:
    """The longest time in hours for which a visitor's message waited for a person's first reply."""
    said = ChronicleEntry.objects.filter(session_id__in=ids, kind=EntryKind.MESSAGE).order_by("session_id", "seq")
    begun: dict[UUID, datetime] = {}
    waits: dict[UUID, float] = {}
    for session_id, sender, at in said.values_list("session_id", "sender", "created_at"):
        if sender == Sender.VISITOR:
            begun.setdefault(session_id, at)
        elif sender == Sender.HUMAN and (since := begun.pop(session_id, None)) is not None:
            waits[session_id] = max(waits.get(session_id, 0.0), round((at - since).total_seconds() / 3600, 1))
    return waits


def waiting(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Who waits now and for how many hours: visitors for a person, and work for an approval."""
    moment = now()
    visitors = _conversations(context).filter(wanted_person_at__lt=moment - WAITS_TOO_LONG)
    told = visitors.order_by("wanted_person_at").values_list("pk", "wanted_person_at", "wanted_because")
    work = WorkItem.objects.filter(
        deployment_id=context["deployment"],
        status=WorkItemStatus.PENDING,
        created_at__lt=moment - WAITS_TOO_LONG_FOR_APPROVAL,
    ).order_by("created_at")
    return {
        "visitors": [
            {"id": str(pk), "hours": _hours(moment - at), "because": because}
            for pk, at, because in told[:MOST_CONVERSATIONS]
            if at is not None
        ],
        "work": [
            {"id": str(pk), "hours": _hours(moment - at)}
            for pk, at in work.values_list("pk", "created_at")[:MOST_CONVERSATIONS]
        ],
    }


def _hours(span: timedelta) -> float:
    return round(span.total_seconds() / 3600, 1)


def promises(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, Any]:
    """Promises whose time is up and after which nothing was said: the last line of unresolved conversations."""
    moment = now()
    resolved = DeskState.objects.filter(status=DeskStatus.RESOLVED).values("session_id")
    rows = _conversations(context).filter(
        last_sender__in=(Sender.HUMAN, Sender.BOT), last_active_at__gt=moment - timedelta(days=FIRST_DAYS)
    )
    rows = rows.exclude(pk__in=resolved).order_by("last_active_at")
    found = []
    for pk, preview, said_at in rows.values_list("pk", "preview", "last_active_at")[:MOST_CONVERSATIONS]:
        due = promise_due(preview, said_at)
        if due is not None and due < moment:
            found.append(
                {
                    "id": str(pk),
                    "said": scrub(preview),
                    "said_at": said_at.isoformat(),
                    "due": due.date().isoformat(),
                    "late_days": (moment - due).days,
                }
            )
    return {"promises": found}


def refunds(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, Any]:
    """The refunds of the last 90 days in the company's books, and the totals of their orders."""
    day = (now() - timedelta(days=REFUND_DAYS)).date().isoformat()
    rows = Record.objects.filter(book="refunds", data__day__gte=day).order_by("key")
    read = [
        {"key": row.key, "customer": row.subject, **{name: row.data.get(name) for name in ("order", "amount", "day")}}
        for row in rows[:MOST_RECORDS]
    ]
    orders = Record.objects.filter(book="orders", key__in={str(row["order"]) for row in read})
    totals = {key: data.get("total") for key, data in orders.values_list("key", "data")}
    return {"refunds": read, "totals": totals, "left": max(rows.count() - len(read), 0)}


def document_ages(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, object]:
    """Documents that were not changed for a year, and their sentences about a time that is over."""
    newest = DocumentVersion.objects.select_related("document").order_by("document_id", "-number")
    moment, found = now(), []
    for version in newest.distinct("document_id")[:MOST_DOCUMENTS]:
        outdated = outdated_sentences(version.text, moment.date())
        is_old = moment - version.created_at > OLD_DOCUMENT
        if outdated or is_old:
            found.append(
                {
                    "document_id": str(version.document_id),
                    "version_id": str(version.pk),
                    "title": version.document.title,
                    "changed": version.created_at.date().isoformat(),
                    "old": is_old,
                    "sentences": [{"text": text, "date": day.isoformat()} for text, day in outdated[:5]],
                }
            )
    return {"documents": found}


def new_articles(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, object]:
    """The documents that were added or changed since the last run, with their text, newest first."""
    since = _since(context)
    rows = DocumentVersion.objects.select_related("document").order_by("document_id", "-number")
    new = sorted(rows.distinct("document_id"), key=lambda row: row.created_at, reverse=True)
    new = [row for row in new if row.created_at > since]
    articles = [
        {"document_id": str(row.document_id), "version_id": str(row.pk), "title": row.document.title, "text": row.text}
        for row in new[:MOST_ARTICLES]
    ]
    for article in articles:
        article["text"] = article["text"][:_LONGEST_ARTICLE]
    return {"since": since.isoformat(), "articles": articles, "left": max(len(new) - len(articles), 0)}


def memories(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, Any]:
    """Memories to review, by id and date without their text, and proposals without a decision."""
    moment = now()
    company = MemoryItem.objects.filter(scope__startswith="tenant:").order_by("updated_at")
    expired = company.filter(valid_until__lt=moment)
    old = company.filter(updated_at__lt=moment - OLD_MEMORY, valid_until=None)
    waiting_rows = MemoryProposal.objects.filter(
        state=ProposalState.PROPOSED, deleted_at=None, quarantined_at=None, created_at__lt=moment - OLD_PROPOSAL
    ).order_by("created_at")
    return {
        "total": company.count(),
        "expired": [str(pk) for pk in expired.values_list("pk", flat=True)[:MOST_MEMORIES]],
        "old": [str(pk) for pk in old.values_list("pk", flat=True)[:MOST_MEMORIES]],
        "waiting": [str(pk) for pk in waiting_rows.values_list("pk", flat=True)[:MOST_MEMORIES]],
    }


def figures(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, object]:
    """The figures of the last seven days and of the seven before."""
    moment = now()
    return {"this": _week(context, moment), "before": _week(context, moment - timedelta(days=7))}


def _week(context: Mapping[str, Any], until: datetime) -> dict[str, Any]:
    since = until - timedelta(days=7)
    rows = _conversations(context).filter(created_at__gte=since, created_at__lt=until)
    sessions = list(rows.values("pk", "created_at", "wanted_because").order_by("created_at")[: 10 * MOST_CONVERSATIONS])
    facts = _facts(sessions)
    labels = Counter(label for row in facts for label in row["labels"])
    waits = sorted(row["waited_hours"] for row in facts if row["waited_hours"] is not None)
    questions = OpenQuestion.objects.filter(
        deployment_id=context["deployment"], last_at__gte=since, last_at__lt=until
    ).order_by("-count")
    return {
        "from": since.date().isoformat(),
        "to": until.date().isoformat(),
        "conversations": len(facts),
        "handed_over": sum(bool(row["because"]) for row in facts),
        "rated": sum(row["rating"] is not None for row in facts),
        "unhappy": sum((row["rating"] or 5) <= 2 for row in facts),
        "failed": sum(row["failed"] > 0 for row in facts),
        "longest_wait": waits[-1] if waits else None,
        "labels": labels.most_common(3),
        "question": questions.values_list("text", flat=True).first(),
    }


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "conversations": conversations,
        "waiting": waiting,
        "promises": promises,
        "refunds": refunds,
        "document_ages": document_ages,
        "new_articles": new_articles,
        "memories": memories,
        "figures": figures,
    }
)
