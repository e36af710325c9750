"""Search of the command palette: pages, and the tenant's own objects by name.

Call it inside a tenant's scope; it returns only what the member's role may open. Each kind is one query with a limit.
Visitors' messages are not searched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import Case, Model, Q, QuerySet, When
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.approvals.models import OPEN_STATUSES, Card
from apps.autonomy.models import Task
from apps.console.labels import inline_label
from apps.console.members import Member
from apps.console.navigation import pages_for, parts_for
from apps.console.pages.saved_views.addresses import address_of
from apps.console.templatetags.console import status_in_words
from apps.gates.models import Gate
from apps.inbox import saved_views
from apps.sessions import pseudonyms
from apps.sessions.models import ChatSession
from apps.tenants.models import Membership
from apps.work.models import WorkItem
from kernel.unicode_safety import escape_hidden

Row = TypeVar("Row", bound=Model)

MAX_CHARS = 80
# Results per kind.
MAX_RESULTS = 6
_MIN_CHARS = 2
_OPEN_FIRST = Case(When(status__in=OPEN_STATUSES, then=0), default=1)


@dataclass(frozen=True)
class Hit:
    """One result; `note` says what it is, `mark` is the risk of an open card."""

    title: str
    address: str
    note: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    hits: list[Hit]


def search(member: Member, words: str) -> list[Group]:
    """Return the results by kind; without words, all pages and the cards that wait for a decision."""
    words = " ".join(words.replace("\0", "")[:MAX_CHARS].split())
    pages = [Hit(str(entry.title), entry.address, entry.key) for entry in pages_for(member, words)]
    parts = [Hit(str(part.title), part.address, str(part.words)) for part in parts_for(member, words)] if words else []
    groups = [Group(_("Pages"), pages), Group(_("Settings"), parts[:MAX_RESULTS]), *_objects(member, words)]
    return [group for group in groups if group.hits]


def _objects(member: Member, words: str) -> list[Group]:
    if not words:
        waiting: QuerySet[Card] = Card.objects.filter(status__in=OPEN_STATUSES).order_by("created_at")
        return [Group(_("Waiting for a decision"), _cards(waiting))]
    if len(words) < _MIN_CHARS:
        return []
    groups = [
        Group(_("Conversations"), _conversations(words)),
        Group(
            _("Decisions"),
            _cards(Card.objects.filter(_contains_all(words, "intent")).order_by(_OPEN_FIRST, "-created_at")),
        ),
        Group(_("Work"), _work(words)),
        Group(_("Automations"), _automations(words)),
        Group(_("Saved views"), _views(member, words)),
    ]
    return groups + (
        [Group(_("Gates"), _gates(words)), Group(_("Members"), _members(words))] if member.may_administer else []
    )


def _contains_all(words: str, *columns: str) -> Q:
    """Return the condition that each word is in one of the columns."""
    condition = Q()
    for word in words.split():
        in_any_column = Q()
        for column in columns:
            in_any_column |= Q(**{f"{column}__icontains": word})
        condition &= in_any_column
    return condition


def _cards(rows: QuerySet[Card]) -> list[Hit]:
    return [
        Hit(
            escape_hidden(card.intent),
            reverse("console-card", args=[card.pk]),
            pgettext("a card", "waiting") if card.is_open else inline_label(card.get_status_display()),
            card.risk if card.is_open else "",
        )
        for card in rows[:MAX_RESULTS]
    ]


def _conversations(words: str) -> list[Hit]:
    """Search by the contact's name, customer id, or the made-up name of a visitor without one."""
    condition = _contains_all(words, "customer_name", "customer")
    for first, last in pseudonyms.ids_named(words):
        condition |= Q(pk__gte=first, pk__lte=last, customer_name="")
    rows = (
        ChatSession.objects.filter(condition, seq__gt=0, is_test=False)
        .select_related("deployment")
        .order_by("-last_active_at")
    )
    return _hits(rows, lambda session: (session.visitor_name, "console-conversation", session.deployment.title))


def _work(words: str) -> list[Hit]:
    rows = WorkItem.objects.filter(_contains_all(words, "title")).select_related("parent").order_by("-created_at")
    return _hits(rows, lambda item: (item.title, "console-work-item", status_in_words(item)))


def _automations(words: str) -> list[Hit]:
    rows = Task.objects.filter(_contains_all(words, "name"), deleted_at=None).order_by("name")
    return _hits(rows, lambda task: (task.name, "console-task", _("automation")))


def _views(member: Member, words: str) -> list[Hit]:
    found = [
        view
        for view in saved_views.views_for(member.user)
        if all(word in view.name.casefold() for word in words.casefold().split())
    ]
    return [
        Hit(escape_hidden(view.name), address_of(view), inline_label(view.get_page_display()))
        for view in found[:MAX_RESULTS]
    ]


def _gates(words: str) -> list[Hit]:
    rows = Gate.objects.filter(_contains_all(words.replace(" ", "_"), "name") | _contains_all(words, "name")).order_by(
        "name"
    )
    return _hits(rows, lambda gate: (gate.name.replace("_", " "), "console-gate", _("gate")))


def _members(words: str) -> list[Hit]:
    condition = _contains_all(words, "user__first_name", "user__last_name", "user__email")
    rows = Membership.objects.filter(condition).select_related("user").order_by("user__email")
    page = reverse("console-members")
    return [
        Hit(escape_hidden(one.user.display_name), f"{page}#member-{one.pk}", inline_label(one.get_role_display()))
        for one in rows[:MAX_RESULTS]
    ]


def _hits(rows: QuerySet[Row], describe: Callable[[Row], tuple[str, str, str]]) -> list[Hit]:
    """Return the rows as results; `describe` returns title, page and note of a row."""
    lines = [(row.pk, describe(row)) for row in rows[:MAX_RESULTS]]
    return [Hit(escape_hidden(title), reverse(page, args=[pk]), note) for pk, (title, page, note) in lines]
