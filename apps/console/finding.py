"""Where is what somebody types into the palette? Pages, and the tenant's own things by their names.

Only inside a tenant's scope, and only what the member's role may open. Every kind is one query with a limit; what a
visitor wrote is not searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, When
from django.urls import reverse

from apps.approvals.models import OPEN_STATUSES, Card
from apps.autonomy.models import Task
from apps.console.members import Member
from apps.console.places import places_for
from apps.gates.models import Gate
from apps.sessions.models import ChatSession
from apps.tenants.models import Membership
from apps.work.models import WorkItem
from kernel.unicode_safety import escape_hidden

LONGEST = 80
# Of each kind so many; whoever wants more types more.
MOST = 6
_SHORTEST = 2
_OPEN_FIRST = Case(When(status__in=OPEN_STATUSES, then=0), default=1)
_CODE = re.compile(r"(?:visitor\s+)?([0-9a-f]{2,4})", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    """One line of the palette; `note`: what it is, `mark`: the risk of a card that waits."""

    title: str
    address: str
    note: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    hits: list[Hit]


def found(member: Member, said: str) -> list[Group]:
    """What answers to `said`, by kind; with nothing typed the pages and what waits for a decision."""
    said = " ".join(said.replace("\0", "")[:LONGEST].split())
    pages = [Hit(one.title, one.address, one.key) for one in places_for(member, said)]
    groups = [Group("Pages", pages), *_things(member, said)]
    return [group for group in groups if group.hits]


def _things(member: Member, said: str) -> list[Group]:
    if not said:
        return [Group("Waiting for a decision", _cards(_waiting()))]
    if len(said) < _SHORTEST:
        return []
    groups = [
        Group("Conversations", _conversations(said)),
        Group("Decisions", _cards(Card.objects.filter(_each(said, "intent")).order_by(_OPEN_FIRST, "-created_at"))),
        Group("Work", _work(said)),
        Group("Tasks", _tasks(said)),
    ]
    return groups + ([Group("Gates", _gates(said)), Group("Members", _members(said))] if member.may_administer else [])


def _each(said: str, *columns: str) -> Q:
    """Every typed word stands in one of the columns."""
    wanted = Q()
    for word in said.split():
        somewhere = Q()
        for column in columns:
            somewhere |= Q(**{f"{column}__icontains": word})
        wanted &= somewhere
    return wanted


def _waiting() -> QuerySet[Card]:
    waiting: QuerySet[Card] = Card.objects.filter(status__in=OPEN_STATUSES).order_by("created_at")
    return waiting


def _cards(rows: QuerySet[Card]) -> list[Hit]:
    return [
        Hit(
            escape_hidden(card.intent),
            reverse("console-card", args=[card.pk]),
            "waits" if card.is_open else str(card.get_status_display()).lower(),
            card.risk if card.is_open else "",
        )
        for card in rows[:MOST]
    ]


def _conversations(said: str) -> list[Hit]:
    """By the contact's name, the tenant's own number for them, or the code of a visitor without a name."""
    wanted = _each(said, "customer_name", "customer")
    if code := _CODE.fullmatch(said):
        low, high = (UUID(code[1].ljust(32, filler)) for filler in "0f")
        wanted |= Q(pk__gte=low, pk__lte=high, customer_name="")
    rows = (
        ChatSession.objects.filter(wanted, seq__gt=0, is_test=False)
        .select_related("deployment")
        .order_by("-last_active_at")
    )
    return _hits(rows, lambda one: (one.visitor_name, "console-conversation", one.deployment.title))


def _work(said: str) -> list[Hit]:
    rows = WorkItem.objects.filter(_each(said, "title")).order_by("-created_at")
    return _hits(rows, lambda one: (one.title, "console-work-item", str(one.get_status_display()).lower()))


def _tasks(said: str) -> list[Hit]:
    rows = Task.objects.filter(_each(said, "name"), deleted_at=None).order_by("name")
    return _hits(rows, lambda one: (one.name, "console-task", "runs by itself"))


def _gates(said: str) -> list[Hit]:
    rows = Gate.objects.filter(_each(said.replace(" ", "_"), "name") | _each(said, "name")).order_by("name")
    return _hits(rows, lambda one: (one.name.replace("_", " "), "console-gate", "gate"))


def _members(said: str) -> list[Hit]:
    wanted = _each(said, "user__first_name", "user__last_name", "user__email")
    rows = Membership.objects.filter(wanted).select_related("user").order_by("user__email")
    page = reverse("console-members")
    return [
        Hit(escape_hidden(one.user.display_name), f"{page}#member-{one.pk}", str(one.get_role_display()).lower())
        for one in rows[:MOST]
    ]


def _hits(rows: QuerySet[Any], told: Callable[[Any], tuple[str, str, str]]) -> list[Hit]:
    """`told`: title, page and note of a row."""
    lines = [(row.pk, told(row)) for row in rows[:MOST]]
    return [Hit(escape_hidden(title), reverse(page, args=[pk]), note) for pk, (title, page, note) in lines]
