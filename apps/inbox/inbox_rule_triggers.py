"""Enqueue runs of inbox rules, in the transaction of what triggers them, where an active rule has that trigger.

One job (`Kind.INBOX_RULES`) is enqueued for each thing that happened, and one, due later, for each length of a wait.
`inbox_rule_runs` runs the rules. What a rule does enqueues nothing, so that rules never trigger rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from django.db.models import QuerySet

from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.inbox.enums import DeskStatus, RuleTrigger
from apps.inbox.models import DeskState, InboxRule
from apps.inbox.staff import RuleClient, Staff
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.tenancy import Read, built_once
from kernel.tenancy.reads import Rows

# So many conversations that wait already get a rule that is activated.
WAITING_ALREADY = 500


def active_triggers() -> Read[dict[str, list[int]]]:
    """The triggers that active rules have, with their minutes."""
    return _active_rules.columns().parsed(_minutes_by_trigger)


def enqueue_for_entries(
    session: ChatSession, entries: Iterable[ChronicleEntry], active: Mapping[str, Collection[int]]
) -> None:
    """Enqueue what the visitor's new messages trigger; `active` is the value of `active_triggers`."""
    said = [entry for entry in entries if entry.sender == Sender.VISITOR and entry.kind == EntryKind.MESSAGE]
    for entry in () if session.is_test else said:
        triggers = [RuleTrigger.MESSAGE] if RuleTrigger.MESSAGE in active else []
        if RuleTrigger.OPENED in active and not _wrote_before(entry):
            triggers.insert(0, RuleTrigger.OPENED)
        if RuleTrigger.REOPENED in active and _reopened(entry):
            triggers.append(RuleTrigger.REOPENED)
        if triggers:
            _enqueue(session.pk, *triggers, seq=entry.seq)
        if session.owner == Owner.HUMAN:
            _enqueue_waits(session.pk, active.get(RuleTrigger.WAITING, ()), since=entry.created_at)


def enqueue_for_handover(session: ChatSession) -> None:
    """Enqueue what a conversation triggers that waits for a person from now on, or for another team."""
    active = active_triggers().value
    if RuleTrigger.HANDED_OVER in active:
        _enqueue(session.pk, RuleTrigger.HANDED_OVER)
    if session.wanted_person_at is not None:
        _enqueue_waits(session.pk, active.get(RuleTrigger.WAITING, ()), since=session.wanted_person_at)


def enqueue_for_state(session_id: UUID, trigger: RuleTrigger, by: Staff) -> None:
    """Enqueue what a conversation triggers that was resolved or reopened."""
    if not isinstance(by, RuleClient) and InboxRule.objects.filter(is_active=True, trigger=trigger).exists():
        _enqueue(session_id, trigger)


def enqueue_for_waiting(minutes: int) -> None:
    """Enqueue a rule that was just activated for the visitors who wait for a person already."""
    waiting = ChatSession.objects.filter(owner=Owner.BOT, wanted_person_at__isnull=False, is_test=False)
    for session_id, since in waiting.order_by("-wanted_person_at").values_list("pk", "wanted_person_at")[
        :WAITING_ALREADY
    ]:
        if since is not None:
            _enqueue_waits(session_id, [minutes], since=since)


def _minutes_by_trigger(rows: Rows) -> dict[str, list[int]]:
    active: dict[str, list[int]] = {}
    for trigger, minutes in rows:
        active.setdefault(trigger, []).append(minutes)
    return active


@built_once
def _active_rules() -> QuerySet[InboxRule, Any]:
    return InboxRule.objects.filter(is_active=True).values_list("trigger", "minutes").order_by()


def _wrote_before(entry: ChronicleEntry) -> bool:
    said = ChronicleEntry.objects.filter(session=entry.session_id, sender=Sender.VISITOR, kind=EntryKind.MESSAGE)
    return bool(said.filter(seq__lt=entry.seq).exists())


def _reopened(entry: ChronicleEntry) -> bool:
    """Whether this message has just opened a resolved or snoozed conversation again (`sessions.sql.inbox`)."""
    state = DeskState.objects.filter(session=entry.session_id, status=DeskStatus.OPEN)
    return bool(state.filter(changed_at=entry.created_at).exists())


def _enqueue(session_id: UUID, *triggers: RuleTrigger, seq: int = 0) -> None:
    payload = {"session": str(session_id), "triggers": [trigger.value for trigger in triggers], "seq": seq}
    enqueue(Kind.INBOX_RULES, scope_id=session_id, payload=payload)


def _enqueue_waits(session_id: UUID, lengths: Iterable[int], *, since: datetime) -> None:
    for minutes in sorted(set(lengths)):
        payload = {"session": str(session_id), "triggers": [RuleTrigger.WAITING.value], "seq": 0, "minutes": minutes}
        enqueue(
            Kind.INBOX_RULES,
            # A scope of its own, so that what is due at once does not stand behind it.
            scope_id=uuid5(session_id, f"waiting:{minutes}"),
            payload=payload,
            message_id=f"waiting:{session_id}:{minutes}:{since.timestamp():.6f}",
            due_at=since + timedelta(minutes=minutes),
        )
