"""Lists of conversations for staff, and what the panel beside one shows. Reads only, in the tenant's scope.

A page of the list takes the same number of statements for one conversation and for a thousand; counts are capped.
Snoozed conversations that are due count as open without a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import (
    Case,
    Count,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
    prefetch_related_objects,
)
from django.db.models.expressions import RawSQL

from apps.inbox import reading, search
from apps.inbox.enums import DeskStatus, Priority, Shown, SlaOutcome, Sort
from apps.inbox.models import CannedReply, DeskState, Label, Mention, Note, SessionLabel, SlaClock, Team
from apps.inbox.sql.search import KNOWN, NEAR, SAID
from apps.inbox.staff import ANSWERING_ROLES
from apps.messengers.enums import ChannelKind
from apps.sessions import pseudonyms
from apps.sessions.enums import Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.rules import preview_of
from apps.tenants.models import Membership, User
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.pagination import read_page
from kernel.tenancy import current_tenant_id, read_from_replica

TABS = ("mine", "mentions", "unassigned", "all")
PAGE = 50
COUNTED = 99
NOTES_SHOWN = 200
EARLIER_SHOWN = 10
# Levels and queues to choose from are those of the newest conversations.
LOOKED_AT = 1000
# So many names are compared letter by letter with what was typed.
NEAR_LOOKED_AT = 500
_SHOWN_WITH = ("deployment", "owner_user", "desk__assignee", "desk__team")
# Without a priority is as urgent as normal.
_MOST_URGENT_FIRST = (Priority.URGENT, Priority.HIGH, Priority.NORMAL, Priority.LOW)
_WAITS = Q(owner=Owner.BOT, wanted_person_at__isnull=False)


@dataclass(frozen=True)
class Asked:
    """What a list is asked for. `assignee`: a member's id, or the value for unassigned ones; without an assignee, the
    member who answers. `customer`: those whose it is or was. `since`: those active from then on. `before`: the cursor
    of a page. `unread`: those with something unread for the member whose list it is. `overdue`: those of which an SLA
    target is missed. Empty texts and None ask for everything."""

    tab: str = "all"
    shown: Shown = Shown.ACTIVE
    label: UUID | None = None
    team: UUID | None = None
    deployment: UUID | None = None
    assignee: str = ""
    queue: str = ""
    level: str = ""
    words: str = ""
    customer: str = ""
    since: datetime | None = None
    before: str = ""
    unread: bool = False
    overdue: bool = False
    sort: Sort = Sort.ACTIVITY


@dataclass(frozen=True)
class Standing:
    """How a conversation stands for staff now: a snoozed one that is due, or whose visitor wants a person since, is
    open."""

    status: DeskStatus = DeskStatus.OPEN
    until: datetime | None = None
    assignee: User | None = None
    team: Team | None = None
    priority: Priority = Priority.NONE


@dataclass(frozen=True)
class Listed:
    """A conversation as a row of a list. `asked`: the beginning of what its visitor wrote last, at `asked_at`;
    `unread`: how many of their messages, and of the notes that mention the member whose list it is, are unread;
    `clock`: of an open one, the SLA clock that is due first."""

    session: ChatSession
    standing: Standing
    labels: tuple[Label, ...] = ()
    asked: str = ""
    asked_at: datetime | None = None
    unread: int = 0
    clock: SlaClock | None = None

    @property
    def waiting_since(self) -> datetime | None:
        """Since when the visitor waits for a person: for the first, or for the answer of the one they have."""
        if self.standing.status != DeskStatus.OPEN:
            return None
        if self.session.wanted_person_at is not None:
            return self.session.wanted_person_at
        is_owed = self.session.owner == Owner.HUMAN and self.session.last_sender == Sender.VISITOR
        return self.asked_at if is_owed else None

    @property
    def channel(self) -> str:
        """The name of the channel beside the widget; empty for the widget."""
        return str(ChannelKind(self.session.channel).label) if self.session.channel in ChannelKind.values else ""


@dataclass(frozen=True)
class Page:
    """One page of a list; `older`: the cursor of the next, "" at the end; `due`: when the list is another one by
    itself."""

    rows: tuple[Listed, ...]
    older: str
    due: datetime | None = None


@dataclass(frozen=True)
class Choices:
    """What a list can be narrowed to."""

    labels: list[Label] = field(default_factory=list)
    members: list[User] = field(default_factory=list)
    teams: list[Team] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)


def conversations(asked: Asked, user: User | None, *, limit: int = PAGE) -> Page:
    """Return conversations with messages, the last active first; or, sorted by due time, those with an SLA clock, the
    first due first. `user`: whose the list "mine" is. A search reads the replica, where there is one."""
    if asked.words:
        return read_from_replica(lambda: _conversations(asked, user, limit))
    return _conversations(asked, user, limit)


def _conversations(asked: Asked, user: User | None, limit: int) -> Page:
    moment = now()
    narrowed = _narrowed(asked, user, moment).select_related(*_SHOWN_WITH)
    rows: Sequence[ChatSession]
    if asked.sort == Sort.DUE:
        first_due = _running_clocks().filter(session=OuterRef("pk")).order_by("due_at").values("due_at")[:1]
        due = narrowed.annotate(due_at=Subquery(first_due)).filter(due_at__isnull=False)
        rows, older = read_page(due, before=asked.before, limit=limit, moment="due_at", earliest_first=True)
    else:
        rows, older = read_page(narrowed, before=asked.before, limit=limit, moment="last_active_at")
    return Page(_listed(rows, moment, user), older, _next_due(moment))


def conversation(session_id: UUID, user: User | None = None) -> Listed:
    """One conversation as the list of `user` has it. Raises `NotFound` for an unknown or foreign id."""
    rows = list(ChatSession.objects.filter(pk=session_id).select_related(*_SHOWN_WITH))
    if not rows:
        raise NotFound()
    return _listed(rows, now(), user)[0]


def version_of(listed: Listed) -> str:
    """What a conversation is at: another one after every entry, handover, note of its state, assignment and label."""
    session, state = listed.session, listed.standing
    labels = sorted(str(label.pk) for label in listed.labels)
    wanted = session.wanted_person_at
    rest = [state.status, state.until and state.until.isoformat(), str(state.assignee and state.assignee.pk)]
    if state.team or state.priority:
        rest += [str(state.team.pk) if state.team else "", state.priority.value]
    told = [str(session.pk), session.seq, session.owner_epoch, wanted and wanted.isoformat(), *rest, *labels]
    return sha256_hex(told)[:32]


def counts(user: User, asked: Asked) -> dict[str, int]:
    """How many active conversations stand in these tabs, and how many of what is asked for are `unread` or `overdue`;
    up to one more than a page says. Of a search the latter are not counted."""
    moment = now()
    numbers = {tab: _narrowed(Asked(tab), user, moment)[: COUNTED + 1].count() for tab in ("mine", "unassigned")}
    unread = Mention.objects.filter(user=user, read=False).values("session")
    numbers["mentions"] = _narrowed(Asked(), user, moment).filter(pk__in=unread)[: COUNTED + 1].count()
    if not asked.words:
        for name, narrower in (("unread", replace(asked, unread=True)), ("overdue", replace(asked, overdue=True))):
            only = _narrowed(narrower, user, moment)
            numbers[name] = only[: COUNTED + 1].count()
    return numbers


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
    status, until = (DeskStatus.OPEN, None) if wanted or due else (DeskStatus(state.status), state.until)
    return Standing(status, until, state.assignee, state.team, Priority(state.priority))


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
        list(Team.objects.all()),
        sorted(set(waiting[:LOOKED_AT])),
        sorted({row["level"] for row in newest}),
    )


def labels() -> list[Label]:
    return list(Label.objects.all())


def label(label_id: UUID) -> Label:
    """Raises `NotFound` for an unknown or foreign id."""
    row: Label | None = Label.objects.filter(pk=label_id).first()
    if row is None:
        raise NotFound()
    return row


def canned_replies() -> list[CannedReply]:
    return list(CannedReply.objects.all())


def canned_reply(reply_id: UUID) -> CannedReply:
    """Raises `NotFound` for an unknown or foreign id."""
    row: CannedReply | None = CannedReply.objects.filter(pk=reply_id).first()
    if row is None:
        raise NotFound()
    return row


def answering_member(member_id: str) -> User:
    """Raises 409 `assignee_unfit` for everybody else."""
    user: User | None = next((user for user in answering_members() if str(user.pk) == member_id), None)
    if user is None:
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, gettext("This teammate can't answer this conversation."))
    return user


def waiting_for(team_id: UUID) -> QuerySet[ChatSession]:
    """Unassigned conversations of this team that wait for a person, by priority and then by how long they wait."""
    waits = _WAITS & _active(now()) & Q(desk__team=team_id, desk__assignee=None)
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(waits, is_test=False)
    ranks = [When(desk__priority=priority, then=Value(rank)) for rank, priority in enumerate(_MOST_URGENT_FIRST)]
    urgency = Case(*ranks, default=Value(_MOST_URGENT_FIRST.index(Priority.NORMAL)), output_field=IntegerField())
    return rows.order_by(urgency, "wanted_person_at", "pk")


def loads_of(member_ids: Iterable[UUID]) -> dict[UUID, int]:
    """How many open conversations each of these members has, of all teams: assigned, or taken over."""
    ids = list(member_ids)
    active = ChatSession.objects.filter(_active(now()), is_test=False)
    given = active.filter(desk__assignee__in=ids).values_list("desk__assignee_id")
    others = Q(desk__assignee=None) | ~Q(desk__assignee=F("owner_user"))
    taken = active.filter(others, owner=Owner.HUMAN, owner_user__in=ids).values_list("owner_user_id")
    loads: dict[UUID, int] = {}
    for rows in (given, taken):
        for member_id, number in rows.annotate(number=Count("pk")):
            loads[member_id] = loads.get(member_id, 0) + number
    return loads


def answering_members() -> list[User]:
    """Everybody to whom a conversation can be given."""
    rows = Membership.objects.filter(role__in=ANSWERING_ROLES, user__is_active=True).select_related("user")
    return [row.user for row in rows.order_by("created_at")]


def notes(session_id: UUID) -> list[Note]:
    """The newest notes of a conversation with whom they mention, oldest first."""
    rows = notes_page(session_id, limit=NOTES_SHOWN)[0][::-1]
    prefetch_related_objects(rows, "mentions__user")
    return rows


def notes_page(session_id: UUID, *, before: str = "", limit: int) -> tuple[list[Note], str]:
    """Notes of a conversation, newest first, and the cursor of the page after them."""
    rows = Note.objects.filter(session_id=session_id).select_related("author")
    return read_page(rows, before=before, limit=limit)


def earlier(session: ChatSession) -> list[ChatSession]:
    """Other conversations of the same customer, last active first."""
    if not session.whose:
        return []
    rows = ChatSession.objects.filter(last_customer=session.whose, seq__gt=0, is_test=False).exclude(pk=session.pk)
    return list(rows.select_related("deployment", "desk").order_by("-last_active_at")[:EARLIER_SHOWN])


def _listed(rows: Sequence[ChatSession], moment: datetime, user: User | None) -> tuple[Listed, ...]:
    ids = [row.pk for row in rows]
    labels, put_in, clocks = labels_of(ids), _last_put_in(ids), _first_due(ids)
    unread = reading.unread_in(ids, user) if user else {}
    listed = []
    for row in rows:
        text, at = put_in.get(row.pk, ("", None))
        state = standing(row, moment)
        is_open = state.status == DeskStatus.OPEN
        fresh, clock = (unread.get(row.pk, 0), clocks.get(row.pk)) if is_open else (0, None)
        listed.append(Listed(row, state, labels.get(row.pk, ()), preview_of(text), at, fresh, clock))
    return tuple(listed)


def _running_clocks() -> QuerySet[SlaClock]:
    rows: QuerySet[SlaClock] = SlaClock.objects.filter(ended_at=None, due_at__isnull=False)
    return rows


def _first_due(ids: list[UUID]) -> dict[UUID, SlaClock]:
    """The clock of each conversation that is due first."""
    return {row.session_id: row for row in _running_clocks().filter(session_id__in=ids).order_by("-due_at")}


def _last_put_in(ids: list[UUID]) -> dict[UUID, tuple[str, datetime]]:
    """What the visitor of each conversation wrote last, and when."""
    newest = reading.put_in().filter(session=OuterRef("pk")).order_by("-seq").values("pk")[:1]
    last = ChatSession.objects.filter(pk__in=ids).annotate(entry=Subquery(newest)).values("entry")
    rows = ChronicleEntry.objects.filter(pk__in=last).values_list("session_id", "text", "created_at")
    return {session_id: (text, at) for session_id, text, at in rows}


def _narrowed(asked: Asked, user: User | None, moment: datetime) -> QuerySet[ChatSession]:
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(
        _in_tab(asked.tab, user), _shown(asked.shown, moment), _chosen(asked), seq__gt=0, is_test=False
    )
    if asked.unread:
        # Of those at rest nothing is shown as unread.
        rows = reading.with_unread(rows.filter(_active(moment)), user) if user else rows.none()
    if words := asked.words.strip():
        rows = rows.filter(_about(words))
    return rows


def _in_tab(tab: str, user: User | None) -> Q:
    if tab == "mine":
        answered = ChatSession.objects.filter(owner=Owner.HUMAN, owner_user=user).values("pk")
        return Q(pk__in=answered.union(DeskState.objects.filter(assignee=user).values("session_id")))
    if tab == "mentions":
        return Q(pk__in=Mention.objects.filter(user=user).values("session"))
    if tab == "unassigned":
        return _WAITS & Q(desk__assignee=None)
    return Q()


def _shown(shown: Shown, moment: datetime) -> Q:
    match shown:
        case Shown.ANY:
            return Q()
        case Shown.ACTIVE:
            return _active(moment)
        case Shown.OPEN:
            return _active(moment) & reading.CONCERNS_STAFF
        case Shown.BOT:
            return _active(moment) & ~reading.CONCERNS_STAFF
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
    chosen = Q(last_active_at__gte=asked.since) if asked.since else Q()
    if asked.overdue:
        chosen &= Q(pk__in=_running_clocks().filter(outcome=SlaOutcome.MISSED).values("session_id"))
    if asked.label:
        chosen &= Q(pk__in=SessionLabel.objects.filter(label_id=asked.label).values("session_id"))
    if asked.team:
        chosen &= Q(desk__team=asked.team)
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
    if asked.customer:
        chosen &= Q(last_customer=asked.customer)
    return chosen


def _about(words: str) -> Q:
    """Whose name or customer id it is, near enough, or where it was said."""
    tenant, found = current_tenant_id(), Q(pk=None)
    for first, last in pseudonyms.ids_named(words):
        found |= Q(pk__gte=first, pk__lte=last, customer_name="")
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
