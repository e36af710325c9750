"""Seed thirty days of a demo tenant as `month.yaml` describes them: conversations, ratings, refunds, spending.

Rows of the past are written in bulk and dated back; each conversation keeps its gap-free `seq`, and the audit log says
what was done at the moment at which it was seeded, because its order cannot be rewritten. The same day seeds the same
rows: ids come from names and days. Skipped when the tenant has a month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import yaml

from apps.access import tokens
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.models import OpenQuestion
from apps.guard.enums import CallState, HaltState, Intent, Origin, Phase, RunStatus, SpendKind, TerminalReason
from apps.guard.models import GuardedRun, SpendEntry, ToolCall
from apps.inbox.enums import DeskStatus
from apps.inbox.models import DeskState, Label, SessionLabel
from apps.knowledge.models import DocumentVersion
from apps.knowledge.services import ingest
from apps.sessions import rules
from apps.sessions.enums import EntryKind, Owner, Sender, TurnStatus
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.skills.services import save_record
from apps.tenants.models import Deployment, User
from apps.visitors.enums import RatingScale
from apps.visitors.models import Rating
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from llm.offline.words import content

DAYS = 30
_ACTOR = "seed_demo"
# Who answers a conversation that a person has taken over is recorded by its sender.
_SENDERS = {"visitor": Sender.VISITOR, "bot": Sender.BOT, "human": Sender.HUMAN}
_TAINTS = {Sender.VISITOR: Taint.EXTERNAL, Sender.BOT: Taint.EXTERNAL, Sender.HUMAN: Taint.AUTH}


def talk_id(deployment: Deployment, name: str, day: int) -> UUID:
    """The id of the conversation of this name that was held `day` days ago."""
    return uuid5(deployment.pk, f"month:{name}:{day}")


def seed_month(folder: Path, deployment: Deployment, agent: User) -> int:
    """Seed the month and return the number of conversations; 0 where there is none, or it was seeded before.

    Outside of any scope, because documents are read.
    """
    path = folder / "month.yaml"
    if not path.exists():
        return 0
    described = yaml.safe_load(path.read_text(encoding="utf-8"))
    with tenant_scope(deployment.tenant_id):
        if OpenQuestion.objects.filter(pk=_question_id(deployment, described["unanswered"][0]["text"])).exists():
            return 0
    if (folder / "month").is_dir():
        ingest(deployment.tenant, collection="help", paths=[folder / "month"], root=folder, actor=_ACTOR)
    with tenant_scope(deployment.tenant_id):
        talks = _write_talks(described["talks"], deployment, agent)
        _write_questions(described["unanswered"], deployment)
        _write_books(described)
        _write_spending(described["spend"], deployment)
    return talks


@dataclass
class _Rows:
    """The rows of all conversations, to be written table by table."""

    sessions: list[ChatSession] = field(default_factory=list)
    entries: list[ChronicleEntry] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    desks: list[DeskState] = field(default_factory=list)
    labels: list[SessionLabel] = field(default_factory=list)
    ratings: list[Rating] = field(default_factory=list)


def _write_talks(described: list[Mapping[str, object]], deployment: Deployment, agent: User) -> int:
    labels = {label.name: label for label in Label.objects.all()}
    moment, rows = now(), _Rows()
    for number, (talk, day) in enumerate(_held(described)):
        _talk(rows, talk, _started_at(talk, day, number, moment), talk_id(deployment, talk["name"], day), deployment)
        session = rows.sessions[-1]
        rows.labels += [
            SessionLabel(session=session, label=labels[name]) for name in talk.get("labels", ()) if name in labels
        ]
        _hand_over(rows, talk, session, agent)
    # Desk states come after the entries, because a visitor's message opens a resolved conversation again.
    ChatSession.objects.bulk_create(rows.sessions)
    ChronicleEntry.objects.bulk_create(rows.entries)
    Turn.objects.bulk_create(rows.turns)
    DeskState.objects.bulk_create(rows.desks)
    SessionLabel.objects.bulk_create(rows.labels)
    Rating.objects.bulk_create(rows.ratings)
    return len(rows.sessions)


def _held(described: list[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], int]]:
    for talk in described:
        for day in talk["days"]:
            yield talk, day


def _started_at(talk: Mapping[str, Any], day: int, number: int, moment: datetime) -> datetime:
    """In the working hours of its day; one that waits began as long ago as it waits."""
    if "waits_hours" in talk:
        return moment - timedelta(hours=talk["waits_hours"], minutes=1)
    hour, minute = 8 + number * 7 % 9, number * 13 % 60
    midnight = datetime.combine((moment - timedelta(days=day)).date(), time(), moment.tzinfo)
    return midnight + timedelta(hours=hour, minutes=minute)


def _talk(rows: _Rows, talk: Mapping[str, Any], at: datetime, pk: UUID, deployment: Deployment) -> None:
    session = ChatSession(
        pk=pk,
        deployment=deployment,
        resume_hash=tokens.hash_resume_token(tokens.new_resume_token()),
        locale="en",
        language="en",
        created_at=at,
        last_active_at=at,
    )
    hours = talk.get("hours") or [0.02 * place for place in range(len(talk["said"]))]
    for place, ((who, text), after) in enumerate(zip(talk["said"], hours, strict=True)):
        said_at = at + timedelta(hours=after, seconds=3 * place)
        session.seq += 1
        sender = _SENDERS[who]
        entry = ChronicleEntry(
            session=session,
            seq=session.seq,
            kind=EntryKind.MESSAGE,
            sender=sender,
            text=text,
            payload=_citation(talk) if place == 1 else {},
            taint=_TAINTS[sender],
            created_at=said_at,
        )
        rows.entries.append(entry)
        if sender == Sender.VISITOR:
            session.turns += 1
            rows.turns.append(_turn(session, talk, said_at))
        entry.turn = 0 if sender == Sender.HUMAN else session.turns
        session.preview, session.last_sender, session.last_active_at = rules.preview_of(text), sender, said_at
    rows.sessions.append(session)
    if "rating" in talk:
        rated_at = session.last_active_at + timedelta(minutes=2)
        rating = Rating(session=session, deployment=deployment, scale=RatingScale.THUMBS, score=talk["rating"])
        rating.comment, rating.created_at, rating.changed_at = talk.get("comment", ""), rated_at, rated_at
        rows.ratings.append(rating)
    if talk.get("resolved"):
        resolved_at = session.last_active_at + timedelta(minutes=5)
        rows.desks.append(DeskState(session=session, status=DeskStatus.RESOLVED, changed_at=resolved_at))


def _turn(session: ChatSession, talk: Mapping[str, Any], at: datetime) -> Turn:
    failed = bool(talk.get("failed"))
    return Turn(
        session=session,
        message_seq=session.seq,
        number=session.turns,
        epoch=0,
        step="deliver",
        status=TurnStatus.FAILED if failed else TurnStatus.DONE,
        reason="provider_failed" if failed else "",
        started_at=at,
        finished_at=at + timedelta(milliseconds=900 + 170 * (session.seq * len(talk["name"]) % 11)),
    )


def _citation(talk: Mapping[str, Any]) -> dict[str, object]:
    """The payload of an answer that quotes a document; empty where there is no such document."""
    cited = talk.get("cites")
    if cited is None:
        return {}
    versions = DocumentVersion.objects.select_related("document").filter(document__title=cited["document"])
    version = versions.order_by("-number").first()
    place = -1 if version is None else version.text.find(cited["quote"])
    if version is None or place < 0:
        return {}
    start = len(version.text[:place].encode())
    citation = {
        "document_id": str(version.document_id),
        "version_id": str(version.pk),
        "title": version.document.title,
        "url": "",
        "quote": cited["quote"],
        "start": start,
        "end": start + len(cited["quote"].encode()),
    }
    return {"citations": [citation]}


def _hand_over(rows: _Rows, talk: Mapping[str, Any], session: ChatSession, agent: User) -> None:
    """Say in the audit log that a person was wanted and answered; leave with a person what one answers still."""
    if "because" not in talk:
        return
    subject, staff = f"session:{session.pk}", f"user:{agent.pk}"
    session.wanted_because = talk["because"]
    record(AuditEvent.PERSON_WANTED, actor="visitor", subject=subject, data={"because": talk["because"]})
    if "waits_hours" in talk:
        session.wanted_person_at = session.created_at
        return
    record(AuditEvent.TAKEN_OVER, actor=staff, subject=subject)
    for entry in rows.entries:
        if entry.session_id == session.pk and entry.sender == Sender.HUMAN:
            entry.author, entry.payload = agent, {"name": agent.display_name}
            record(AuditEvent.STAFF_REPLIED, actor=staff, subject=subject, data={"seq": entry.seq})
    if not talk.get("resolved"):
        session.owner, session.owner_user, session.owner_epoch = Owner.HUMAN, agent, 1


def _question_id(deployment: Deployment, text: str) -> UUID:
    return uuid5(deployment.pk, f"month:{text}")


def _write_questions(described: list[Mapping[str, Any]], deployment: Deployment) -> None:
    for question in described:
        last = now() - timedelta(days=question["day"])
        OpenQuestion.objects.get_or_create(
            deployment=deployment,
            digest=sha256_hex(" ".join(sorted(content(question["text"])))),
            defaults={
                "pk": _question_id(deployment, question["text"]),
                "text": question["text"],
                "count": question["times"],
                "first_at": now() - timedelta(days=DAYS),
                "last_at": last,
            },
        )


def _write_books(described: Mapping[str, Any]) -> None:
    """Import the orders and refunds, with the sum of its refunds in each order."""
    refunded: dict[str, float] = {}
    for row in described["refunds"].values():
        refunded[row["order"]] = refunded.get(row["order"], 0) + row["amount"]
    for key, row in described["orders"].items():
        placed = _day(row["day"])
        data = {
            "items": row["items"],
            "total": row["total"],
            "refunded": refunded.get(key, 0),
            "status": "delivered",
            "placed": placed.isoformat(),
            "where": f"was delivered on {placed + timedelta(days=3):%d %B}",
        }
        save_record("orders", key, subject=row["customer"], data=data)
    for key, row in described["refunds"].items():
        data = {name: row[name] for name in ("order", "amount", "reason")} | {"day": _day(row["day"]).isoformat()}
        save_record("refunds", key, subject=row["customer"], data=data)


def _day(days_ago: int) -> date:
    return (now() - timedelta(days=days_ago)).date()


def _write_spending(described: Mapping[str, Any], deployment: Deployment) -> None:
    """One run of a conversation a day with one call, whose entry in the ledger is what models cost on that day."""
    runs, calls, entries = [], [], []
    for days_ago in range(DAYS - 1, 0, -1):
        day = _day(days_ago)
        at = datetime.combine(day, time(17), now().tzinfo)
        kind = "busy" if days_ago == described["busy_day"] else "weekend" if day.weekday() >= 5 else "weekday"
        amount = Decimal(described[kind])
        run = GuardedRun(
            pk=uuid5(deployment.pk, f"month:run:{days_ago}"),
            origin=Origin.CHAT,
            owner_ref=uuid5(deployment.pk, f"month:owner:{days_ago}"),
            deployment=deployment,
            phase=Phase.INTERACTIVE,
            status=RunStatus.COMPLETED,
            halt_state=HaltState.RUNNING,
            terminal_reason=TerminalReason.COMPLETED,
            seq=1,
            calls=1,
            cost_total=amount,
            started_at=at,
            ended_at=at,
        )
        call = ToolCall(
            run=run,
            seq=1,
            effect_key=f"{run.pk}:1",
            intent=Intent.CONVERSE,
            tool="proxy",
            model=described["model"],
            args_digest=sha256_hex(""),
            state=CallState.EXECUTED,
            charged=amount,
            created_at=at,
            settled_at=at,
        )
        runs.append(run)
        calls.append(call)
        entries.append(
            SpendEntry(
                call=call,
                deployment=deployment,
                kind=SpendKind.SETTLE,
                intent=Intent.CONVERSE,
                model=described["model"],
                purpose="proxy",
                day=day,
                amount=amount,
                created_at=at,
            )
        )
    GuardedRun.objects.bulk_create(runs)
    ToolCall.objects.bulk_create(calls)
    SpendEntry.objects.bulk_create(entries)
