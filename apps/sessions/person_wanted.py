"""Note that a visitor waits for a person, and tell them when the team is available.

Called by the turn, and for messages and work that came to nothing; staff see who waits in the inbox.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.dates import WEEKDAYS
from django.utils.formats import date_format

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import chronicle, registry, rules, served
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession
from apps.sessions.signals import person_wanted
from apps.tenants.hours import Schedule, is_open, next_opening, team_status
from kernel.clock import now
from kernel.language import gettext_lazy, in_language
from kernel.taint import Taint

CLOSED = gettext_lazy("We're offline right now. Leave a message, and we'll reply here.")
BACK = gettext_lazy("We'll be back {day} at {time} ({zone}).")
# Why a person is wanted, where no gate said so: the visitor asked, an answer failed, work did not get done.
ASKED, UNANSWERED, WORK = "asked", "unanswered", "work"


def want_person(
    session: ChatSession, *, queue: str = "", because: str = "", language: str = "", actor: str = "visitor"
) -> None:
    """Note on the locked `session` that the visitor waits for a person, in the named `queue` if there is one; staff see
    both in their list. Who waits already keeps their place; a queue's name is added to it. `because`: a short code;
    `language`: what the visitor writes, else what their browser says."""
    waited = session.wanted_person_at is not None
    if session.owner != Owner.BOT or (waited and queue in ("", session.wanted_queue)):
        return
    session.wanted_person_at = session.wanted_person_at or now()
    session.wanted_queue, session.wanted_because = queue[:80] or session.wanted_queue, because[:80]
    session.save(update_fields=["wanted_person_at", "wanted_queue", "wanted_because"])
    data = {name: value for name, value in (("queue", session.wanted_queue), ("because", because)) if value}
    record(AuditEvent.PERSON_WANTED, actor=actor, subject=f"session:{session.pk}", data=data)
    person_wanted(session)
    if not waited and (closed := after_hours(session, now(), language=language or rules.language_of(session))):
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=closed, taint=Taint.AUTH)


def after_hours(session: ChatSession, moment: datetime, *, language: str = "") -> str:
    """The message for a visitor who waits for a person outside opening hours; "" within them."""
    deployment, schedule = session.deployment, schedule_of(session)
    if is_open(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays):
        return ""
    opens = next_opening(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays)
    with in_language(language, *served.settings_of(session).languages):
        told = deployment.after_hours or str(CLOSED)
        return f"{told} {_back(opens, moment)}" if opens else told


def schedule_of(session: ChatSession) -> Schedule:
    """When people answer this conversation: the hours of its team, else of its chatbot."""
    return registry.schedule_of(session) or session.deployment.schedule


def team_of(session: ChatSession) -> dict[str, object]:
    """Return the `team_status` that this visitor is told.

    While they wait for a person or have one, it is that of the team that answers them, which is also away when none of
    its members is available. Otherwise it is the chatbot's, without a query for teams.
    """
    if session.owner == Owner.BOT and session.wanted_person_at is None:
        return team_status(session.deployment.schedule, now())
    status = team_status(schedule_of(session), now())
    if status["open"] and session.owner == Owner.BOT and not registry.is_team_available(session):
        return {"open": False, "opens_at": None}
    return status


def _back(opens: datetime, moment: datetime) -> str:
    """A day of the next week by its name, a later one by its date as well."""
    is_near = opens.date() - moment.astimezone(opens.tzinfo).date() < timedelta(days=7)
    day = str(WEEKDAYS[opens.weekday()]) if is_near else date_format(opens, "l, j F")
    return str(BACK).format(day=day, time=f"{opens:%H:%M}", zone=opens.tzinfo)
