"""Lists of conversations for staff, and what the panel beside one shows. Reads only, in the tenant's scope.

A page of the list takes the same number of statements for one conversation and for a thousand; counts are capped.
Snoozed conversations that are due count as open without a write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL

from apps.inbox import search
from apps.inbox.enums import DeskStatus, Shown
from apps.inbox.handoff import ANSWERING_ROLES
from apps.inbox.models import CannedReply, DeskState, Label, Note, SessionLabel
from apps.inbox.sql.search import KNOWN, NEAR, SAID
from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession
from apps.tenants.models import Membership, User
from kernel.clock import now
from kernel.tenancy import current_tenant_id

TABS = ("mine", "unassigned", "all")
PAGE = 50
COUNTED = 99
NOTES_SHOWN = 200
EARLIER_SHOWN = 10
# Levels and queues to choose from are those of the newest conversations.
LOOKED_AT = 1000
# So many names are compared letter by letter with what was typed.
NEAR_LOOKED_AT = 500
_WAITS = Q(owner=Owner.BOT, wanted_person_at__isnull=False)
_VISITOR = re.compile(r"(?:visitor\s+)?([0-9a-f]{4})", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """Behind which conversation a page of the list begins."""

    at: datetime
    pk: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.pk}"


@dataclass(frozen=True)
class Asked:
    """What a list is asked for. `assignee`: a member's id, or the value for unassigned ones; without an assignee, the
    member who answers. Empty texts and None ask for everything."""

    tab: str = "all"
    shown: Shown = Shown.ACTIVE
    label: UUID | None = None
    deployment: UUID | None = None
    assignee: str = ""
    queue: str = ""
    level: str = ""
    words: str = ""
    before: Place | None = None


@dataclass(frozen=True)
class Standing:
    """How a conversation stands for staff now: a snoozed one that is due, or whose visitor wants a person since, is
    open."""

    status: DeskStatus = DeskStatus.OPEN
    until: datetime | None = None
    assignee: Any = None


@dataclass(frozen=True)
class Listed:
    session: ChatSession
    standing: Standing
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page of a list; `older`: where the next begins, if there is one; `due`: when the list is another one by
    itself."""

    rows: tuple[Listed, ...]
    older: Place | None
    due: datetime | None = None


@dataclass(frozen=True)
class Choices:
    """What a list can be narrowed to."""

    labels: list[Label] = field(default_factory=list)
    members: list[Any] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)


def conversations(asked: Asked, user: User, *, limit: int = PAGE) -> Page:
    """Return conversations with messages, the last active first."""
    moment = now()
    rows = list(
        _narrowed(asked, user, moment).select_related("deployment", "owner_user", "desk__assignee")[: limit + 1]
    )
    labels = labels_of(row.pk for row in rows[:limit])
    listed = tuple(Listed(row, standing(row, moment), labels.get(row.pk, ())) for row in rows[:limit])
    more = len(rows) > limit
    older = Place(listed[-1].session.last_active_at, listed[-1].session.pk) if more else None
    return Page(listed, older, _next_due(moment))


def counts(user: User) -> dict[str, int]:
    """How many active conversations stand in these lists, up to one more than a page says."""
    moment = now()
    return {
        tab: _narrowed(Asked(tab), user, moment).order_by()[: COUNTED + 1].count() for tab in ("mine", "unassigned")
    }


def unassigned_count() -> int:
    """How many visitors wait for a person and have none."""
    return int(ChatSession.objects.filter(_WAITS & _active(now()), seq__gt=0, is_test=False).count())


def standing(session: ChatSession, moment: datetime) -> Standing:
    """How this conversation, read with its desk, stands at `moment`."""
    state = desk_of(session)
    if state is None:
        return Standing()
    wanted = session.wanted_person_at is not None and session.wanted_person_at > state.changed_at
    due = state.until is not None and state.until <= moment
    if wanted or due:
        return Standing(assignee=state.assignee)
    return Standing(DeskStatus(state.status), state.until, state.assignee)


def desk_of(session: ChatSession) -> DeskState | None:
    try:
        return session.desk
    except DeskState.DoesNotExist:
        return None


def labels_of(session_ids: Iterable[UUID]) -> dict[UUID, tuple[Label, ...]]:
    found: dict[UUID, tuple[Label, ...]] = {}
    rows = SessionLabel.objects.filter(session_id__in=list(session_ids)).select_related("label")
    for row in rows.order_by("label__name"):
        found[row.session_id] = (*found.get(row.session_id, ()), row.label)
    return found


def choices() -> Choices:
    waiting = ChatSession.objects.filter(_WAITS).exclude(wanted_queue="").values_list("wanted_queue", flat=True)
    newest = ChatSession.objects.order_by("-last_active_at").values("level")[:LOOKED_AT]
    return Choices(
        labels(),
        answering_members(),
        sorted(set(waiting[:LOOKED_AT])),
        sorted({row["level"] for row in newest}),
    )


def labels() -> list[Label]:
    return list(Label.objects.all())


def canned_replies() -> list[CannedReply]:
    return list(CannedReply.objects.all())


def answering_members() -> list[Any]:
    """Everybody to whom a conversation can be given."""
    rows = Membership.objects.filter(role__in=ANSWERING_ROLES, user__is_active=True).select_related("user")
    return [row.user for row in rows.order_by("created_at")]


def notes(session_id: UUID) -> list[Note]:
    """The newest notes of a conversation, oldest first."""
    rows = Note.objects.filter(session_id=session_id).select_related("author").order_by("-created_at")[:NOTES_SHOWN]
    return list(rows)[::-1]


def earlier(session: ChatSession) -> list[ChatSession]:
    """Other conversations of the same customer, last active first."""
    if not session.whose:
        return []
    rows = ChatSession.objects.filter(last_customer=session.whose, seq__gt=0, is_test=False).exclude(pk=session.pk)
    return list(rows.select_related("deployment", "desk").order_by("-last_active_at")[:EARLIER_SHOWN])


def _narrowed(asked: Asked, user: User, moment: datetime) -> QuerySet[ChatSession]:
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(
        _in_tab(asked.tab, user), _shown(asked.shown, moment), _chosen(asked), seq__gt=0, is_test=False
    )
    if words := asked.words.strip():
        rows = rows.filter(_about(words))
    if asked.before is not None:
        place = asked.before
        # The first condition alone is what an index can be asked.
        rows = rows.filter(last_active_at__lte=place.at).exclude(last_active_at=place.at, pk__gte=place.pk)
    return rows.order_by("-last_active_at", "-pk")


def _in_tab(tab: str, user: User) -> Q:
    if tab == "mine":
        answered = ChatSession.objects.filter(owner=Owner.HUMAN, owner_user=user).values("pk")
        return Q(pk__in=answered.union(DeskState.objects.filter(assignee=user).values("session_id")))
    if tab == "unassigned":
        return _WAITS & Q(desk__assignee=None)
    return Q()


def _shown(shown: Shown, moment: datetime) -> Q:
    people = Q(owner=Owner.HUMAN) | Q(wanted_person_at__isnull=False) | Q(desk__assignee__isnull=False)
    match shown:
        case Shown.ANY:
            return Q()
        case Shown.ACTIVE:
            return _active(moment)
        case Shown.OPEN:
            return _active(moment) & people
        case Shown.BOT:
            return _active(moment) & ~people
        case Shown.SNOOZED | Shown.RESOLVED:
            return _at_rest(moment) & Q(desk__status=shown.value)


def _active(moment: datetime) -> Q:
    """Neither resolved nor still snoozed, or the visitor has asked for a person since."""
    due = Q(desk__status=DeskStatus.SNOOZED, desk__until__lte=moment)
    wanted = Q(wanted_person_at__gt=F("desk__changed_at"))
    return Q(desk__isnull=True) | Q(desk__status=DeskStatus.OPEN) | due | wanted


def _at_rest(moment: datetime) -> Q:
    """The others."""
    later = Q(desk__until__gt=moment) | Q(desk__until=None)
    resting = Q(desk__status=DeskStatus.RESOLVED) | Q(later, desk__status=DeskStatus.SNOOZED)
    return resting & (Q(wanted_person_at=None) | Q(wanted_person_at__lte=F("desk__changed_at")))


def _chosen(asked: Asked) -> Q:
    chosen = Q()
    if asked.label:
        chosen &= Q(pk__in=SessionLabel.objects.filter(label_id=asked.label).values("session_id"))
    if asked.deployment:
        chosen &= Q(deployment_id=asked.deployment)
    if asked.assignee == "nobody":
        chosen &= Q(desk__assignee=None) & ~Q(owner=Owner.HUMAN)
    elif asked.assignee:
        answers = Q(desk__assignee=None, owner=Owner.HUMAN, owner_user=asked.assignee)
        chosen &= Q(desk__assignee=asked.assignee) | answers
    if asked.queue:
        chosen &= Q(wanted_queue=asked.queue)
    if asked.level:
        chosen &= Q(level=asked.level)
    return chosen


def _about(words: str) -> Q:
    """Whose name or customer id it is, near enough, or where it was said."""
    tenant, found = current_tenant_id(), Q(pk=None)
    if named := _VISITOR.fullmatch(words):
        first = int(named[1], 16) << 112
        found |= Q(pk__gte=UUID(int=first), pk__lt=UUID(int=min(first + (1 << 112), (1 << 128) - 1)))
    if said := search.said(words):
        found |= Q(pk__in=RawSQL(SAID, [tenant, said]))  # noqa: S611  (our own words, and values)
    if contact := search.contact(words):
        found |= Q(pk__in=RawSQL(KNOWN, [tenant, contact]))  # noqa: S611  (the same)
    return found | Q(customer_name__in=_names_like(words))


def _names_like(words: str) -> list[str]:
    """Names that are not spelt quite like these words."""
    if not (pieces := search.near(words)):
        return []
    any_of = " | ".join(search.quoted(pieces))
    with connection.cursor() as cursor:
        cursor.execute(NEAR, [pieces, current_tenant_id(), any_of, NEAR_LOOKED_AT])
        return [name for name, _ in cursor.fetchall() if search.is_alike(words, name)]


def _next_due(moment: datetime) -> datetime | None:
    resting = DeskState.objects.filter(status=DeskStatus.SNOOZED, until__gt=moment).order_by("until")
    found: datetime | None = resting.values_list("until", flat=True).first()
    return found
