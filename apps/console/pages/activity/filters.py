"""The filter of the activity feed, read from an address, as a condition on audit entries.

Values that mean nothing (an unknown member, an impossible date) are ignored, never an error.
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.approvals.models import Card
from apps.audit.queries import within_period
from apps.console.pages.activity.event_groups import GROUPS, HIGHLIGHTS
from apps.gates.models import Gate
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment, Membership
from apps.work.models import WorkItem

KINDS = (
    ("highlights", gettext_lazy("Highlights")),
    ("decisions", gettext_lazy("Decisions")),
    ("conversations", gettext_lazy("Conversations")),
    ("work", gettext_lazy("Work")),
    ("policy", gettext_lazy("Policy")),
    ("everything", gettext_lazy("Everything")),
)
# Actors beside the members, who are chosen by their ids.
VISITORS, PLATFORM = "visitors", "platform"


@dataclass(frozen=True)
class ActivityFilter:
    """What to show: a kind of events, an actor, a chatbot and whole days.

    `who` is a member's id, `visitors` or `platform`; `at` is a deployment's id; both days are included.
    """

    show: str = "highlights"
    who: str = ""
    at: str = ""
    since: date | None = None
    until: date | None = None

    @property
    def events(self) -> frozenset[str]:
        return HIGHLIGHTS if self.show == "highlights" else GROUPS.get(self.show, frozenset())

    @property
    def is_active(self) -> bool:
        """True if anything but the kind of events is chosen."""
        return bool(self.who or self.at or self.since or self.until)

    @property
    def query_string(self) -> str:
        """The filter without its kind as the end of an address, beginning with `&`; empty for no filter."""
        chosen = {"who": self.who, "at": self.at, "from": self.since, "to": self.until}
        encoded = urlencode({name: str(value) for name, value in chosen.items() if value})
        return f"&{encoded}" if encoded else ""

    def condition(self, chain: UUID) -> Q:
        """Return the condition on the entries of a chain. Days begin at midnight in the active time zone."""
        since = _midnight(self.since) if self.since else None
        until = _midnight(self.until + timedelta(days=1)) if self.until else None
        return _by_actor(self.who) & _about_deployment(self.at) & within_period(chain, since, until)


def filter_from(parameters: Mapping[str, Any]) -> ActivityFilter:
    """Read the filter from the parameters of a form or an address."""
    show = parameters.get("show", "")
    who, at = parameters.get("who", ""), parameters.get("at", "")
    return ActivityFilter(
        show if show in dict(KINDS) else "highlights",
        who if who in (VISITORS, PLATFORM) or _is_id(who) else "",
        at if _is_id(at) else "",
        _day(parameters.get("from", "")),
        _day(parameters.get("to", "")),
    )


def actor_choices() -> list[tuple[str, str]]:
    """Return the actors to choose from: the members by name, then visitors and the platform."""
    rows = Membership.objects.select_related("user").order_by("user__first_name", "user__email")
    members = [(str(row.user_id), row.user.display_name) for row in rows]
    return [*members, (VISITORS, _("Visitors")), (PLATFORM, _("Bot and platform"))]


def chatbot_choices() -> list[tuple[str, str]]:
    return [(str(pk), title) for pk, title in Deployment.objects.order_by("title").values_list("pk", "title")]


def _by_actor(who: str) -> Q:
    if who == VISITORS:
        return Q(actor__startswith="visitor")
    if who == PLATFORM:
        return ~Q(actor__startswith="visitor") & ~Q(actor__startswith="user:")
    return Q(actor=f"user:{who}") if who else Q()


def _about_deployment(at: str) -> Q:
    """Return a condition for the deployment itself and its conversations, cards, work items and gates."""
    if not at:
        return Q()
    if not Deployment.objects.filter(pk=at).exists():
        return Q(pk=None)
    condition = Q(subject=f"deployment:{at}")
    for kind, model in (("session", ChatSession), ("card", Card), ("work", WorkItem), ("gate", Gate)):
        subject = Concat(Value(f"{kind}:"), Cast("pk", CharField()), output_field=CharField())
        subjects = model._default_manager.filter(deployment_id=at).annotate(about=subject).values("about")
        condition |= Q(subject__in=subjects)
    return condition


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=timezone.get_current_timezone())


def _day(text: str) -> date | None:
    """Return the day, or None for one that date arithmetic or the database cannot take."""
    try:
        day = parse_date(text)
    except ValueError:
        return None
    return day if day and 2000 <= day.year < 2200 else None


def _is_id(text: str) -> bool:
    try:
        return bool(text) and str(UUID(text)) == text
    except ValueError:
        return False
