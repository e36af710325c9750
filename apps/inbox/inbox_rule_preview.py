"""Which conversations of the last week an inbox rule would have run on. Reads only; nothing is changed or enqueued.

Labels, team, assignment and identity are judged as they are now, messages and opening hours as of then. Waits are those
for a person; a visitor who reopened a conversation by writing left no mark of it, so that only teammates' reopening
counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.queries import within_period
from apps.inbox import inbox_rule_conditions as conditions_of
from apps.inbox import queries, rules
from apps.inbox.enums import RuleMatch, RuleTrigger, Shown
from apps.inbox.models import InboxRule
from apps.inbox.queries import Asked, Listed
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChronicleEntry
from kernel.clock import now
from kernel.tenancy import current_tenant_id

PERIOD = timedelta(days=7)
# Of so many conversations, the last active ones, and of so many entries of the log.
LOOKED_AT, EVENTS_LOOKED_AT = 1000, 5000
_EVENTS = {
    RuleTrigger.HANDED_OVER: AuditEvent.PERSON_WANTED,
    RuleTrigger.WAITING: AuditEvent.PERSON_WANTED,
    RuleTrigger.RESOLVED: AuditEvent.CONVERSATION_RESOLVED,
    RuleTrigger.REOPENED: AuditEvent.CONVERSATION_REOPENED,
}
_ENDS = (AuditEvent.TAKEN_OVER, AuditEvent.CONVERSATION_RESOLVED)


@dataclass(frozen=True)
class Preview:
    """The conversations on which the rule would have run. `is_partial`: there were more than were looked at."""

    matches: tuple[Listed, ...]
    looked_at: int
    is_partial: bool


@dataclass(frozen=True)
class _Said:
    seq: int
    text: str
    at: datetime


def preview(rule: InboxRule) -> Preview:
    """Ask the rule's conditions of what triggered it in the last week; the rule need not be saved or active."""
    since = now() - PERIOD
    page = queries.conversations(Asked(shown=Shown.ANY, since=since), None, limit=LOOKED_AT)
    said = _said([listed.session.pk for listed in page.rows])
    happened = _happened(rule, since)
    matches = [
        listed
        for listed in page.rows
        if any(
            rules.meets(
                conditions_of.facts_of(listed, rule.conditions, text=text, moment=moment),
                rule.conditions,
                RuleMatch(rule.match),
            )
            for moment, text in _triggered(
                rule, said.get(listed.session.pk, []), happened.get(listed.session.pk, []), since
            )
        )
    ]
    return Preview(tuple(matches), len(page.rows), bool(page.older))


def _triggered(
    rule: InboxRule, said: list[_Said], happened: Iterable[datetime], since: datetime
) -> list[tuple[datetime, str]]:
    """When the rule would have been triggered in a conversation, each with the message that its conditions ask."""
    if rule.trigger == RuleTrigger.OPENED:
        return [(one.at, one.text) for one in said[:1] if one.at >= since]
    if rule.trigger == RuleTrigger.MESSAGE:
        return [(one.at, one.text) for one in said if one.at >= since]
    return [(at, next((one.text for one in reversed(said) if one.at <= at), "")) for at in happened]


def _said(session_ids: list[UUID]) -> dict[UUID, list[_Said]]:
    """What visitors wrote, in order."""
    entries = ChronicleEntry.objects.filter(session_id__in=session_ids, sender=Sender.VISITOR, kind=EntryKind.MESSAGE)
    said: dict[UUID, list[_Said]] = {}
    for session_id, seq, text, at in entries.order_by("session_id", "seq").values_list(
        "session_id", "seq", "text", "created_at"
    ):
        said.setdefault(session_id, []).append(_Said(seq, text, at))
    return said


def _happened(rule: InboxRule, since: datetime) -> dict[UUID, list[datetime]]:
    """When the rule's event happened in each conversation, by the log; for waits, when they became long enough."""
    event = _EVENTS.get(RuleTrigger(rule.trigger))
    if event is None:
        return {}
    waits, chain = rule.trigger == RuleTrigger.WAITING, current_tenant_id()
    names = [event.value, *(end.value for end in _ENDS)] if waits else [event.value]
    rows = AuditEntry.objects.filter(
        within_period(chain, since, None), chain=chain, event__in=names, subject__startswith="session:"
    )
    newest = rows.order_by("-seq").values_list("subject", "event", "timestamp")[:EVENTS_LOOKED_AT]
    happened: dict[UUID, list[datetime]] = {}
    ended: dict[UUID, datetime] = {}
    for subject, name, at in newest:  # from the newest to the oldest
        session_id = UUID(subject.partition(":")[2])
        if name != event:
            ended[session_id] = at
        elif not waits:
            happened.setdefault(session_id, []).append(at)
        elif (reached := at + timedelta(minutes=rule.minutes)) <= ended.get(session_id, now()):
            happened.setdefault(session_id, []).append(reached)
    return happened
