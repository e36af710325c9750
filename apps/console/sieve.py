"""Which entries of the log does somebody want to see? What they chose, as a condition and as an address.

Words that are no choice at all (an unknown member, a day that does not exist) are left out, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import CharField, Q, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone
from django.utils.dateparse import parse_date

from apps.approvals.models import Card
from apps.audit.queries import within_period
from apps.console.groups import GROUPS, HIGHLIGHTS
from apps.gates.models import Gate
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment, Membership
from apps.work.models import WorkItem

FILTERS = (
    ("highlights", "Highlights"),
    ("decisions", "Decisions"),
    ("conversations", "Conversations"),
    ("work", "Work"),
    ("policy", "Policy"),
    ("everything", "Everything"),
)
# Whose doing it was, beside the members by their ids.
VISITORS, PLATFORM = "visitors", "platform"
_NOBODY = Q(pk=None)


@dataclass(frozen=True)
class Sieve:
    """`show`: a kind; `who`: a member's id, `visitors` or `platform`; `at`: a deployment's id; days are whole."""

    show: str = "highlights"
    who: str = ""
    at: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def events(self) -> frozenset[str]:
        return HIGHLIGHTS if self.show == "highlights" else GROUPS.get(self.show, frozenset())

    @property
    def is_narrow(self) -> bool:
        return bool(self.who or self.at or self.since or self.until)

    @property
    def query(self) -> str:
        """What stands in an address behind `show`, with its `&` before it."""
        chosen = {"who": self.who, "at": self.at, "from": self.since, "to": self.until}
        said = urlencode({name: str(value) for name, value in chosen.items() if value})
        return f"&{said}" if said else ""

    def where(self, chain: UUID) -> Q:
        since = _midnight(self.since) if self.since else None
        until = _midnight(self.until + timedelta(days=1)) if self.until else None
        return _by(self.who) & _about(self.at) & within_period(chain, since, until)


def sieve_of(given: Mapping[str, Any]) -> Sieve:
    """From the fields of a form or an address."""
    show = given.get("show", "")
    who, at = given.get("who", ""), given.get("at", "")
    return Sieve(
        show if show in dict(FILTERS) else "highlights",
        who if who in (VISITORS, PLATFORM) or _is_id(who) else "",
        at if _is_id(at) else "",
        _day(given.get("from", "")),
        _day(given.get("to", "")),
    )


def people() -> list[tuple[str, str]]:
    """Whose doing one can ask for: the members by name, then the others."""
    rows = Membership.objects.select_related("user").order_by("user__first_name", "user__email")
    members = [(str(row.user_id), row.user.display_name) for row in rows]
    return [*members, (VISITORS, "Visitors"), (PLATFORM, "Bot and platform")]


def places() -> list[tuple[str, str]]:
    return [(str(pk), title) for pk, title in Deployment.objects.order_by("title").values_list("pk", "title")]


def _by(who: str) -> Q:
    if who == VISITORS:
        return Q(actor__startswith="visitor")
    if who == PLATFORM:
        return ~Q(actor__startswith="visitor") & ~Q(actor__startswith="user:")
    return Q(actor=f"user:{who}") if who else Q()


def _about(at: str) -> Q:
    """What is about the deployment itself, or one of its conversations, cards, pieces of work or gates."""
    if not at:
        return Q()
    if not Deployment.objects.filter(pk=at).exists():
        return _NOBODY
    wanted = Q(subject=f"deployment:{at}")
    for kind, model in (("session", ChatSession), ("card", Card), ("work", WorkItem), ("gate", Gate)):
        word = Concat(Value(f"{kind}:"), Cast("pk", CharField()), output_field=CharField())
        wanted |= Q(subject__in=model._default_manager.filter(deployment_id=at).values(about=word).values("about"))
    return wanted


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.get_current_timezone())


def _day(given: str) -> date | None:
    """A day that can be counted with, or none."""
    try:
        found = parse_date(given)
    except ValueError:
        return None
    return found if found and 2000 <= found.year < 2200 else None


def _is_id(given: str) -> bool:
    try:
        return bool(given) and str(UUID(given)) == given
    except ValueError:
        return False
