"""Each list that can be exported: its columns, who sees it, and its rows by the filters of its page.

Rows are read page by page through the query of the list itself, so that a file holds what the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from django.http import QueryDict

from apps.approvals.enums import CardKind, CardStatus, Risk
from apps.approvals.queries import CardFilter, list_cards
from apps.audit.queries import newest_entries
from apps.console.members import DECIDING_ROLES, Member
from apps.console.pages.activity.filters import filter_from
from apps.console.pages.contacts.filters import ListFilter as ContactListFilter
from apps.console.pages.inbox.filters import list_query
from apps.console.templatetags.console import stored
from apps.contacts.enums import IdentityKind
from apps.contacts.queries import list_contacts
from apps.inbox.queries import Asked, conversations
from apps.knowledge.enums import GapStatus
from apps.knowledge.models import Document, GapTopic
from apps.tenants.enums import Capability, Role
from apps.tenants.members import list_members
from apps.tenants.rules import roles_with
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.queries import WorkFilter, list_items
from kernel.ids import require_id

AT_ONCE = 200
Row = Sequence[object]
T = TypeVar("T")
C = TypeVar("C", bound=Enum)


@dataclass(frozen=True)
class ListExport:
    columns: tuple[str, ...]
    rows: Callable[[Member, QueryDict], Iterable[Row]]
    roles: tuple[Role, ...] = tuple(Role)


def _conversations(member: Member, given: QueryDict) -> Iterator[Row]:
    asked = list_query({name: str(value) for name, value in given.items()})

    def read(before: str) -> tuple[Sequence[Any], str]:
        page = conversations(Asked(**{**asked.__dict__, "before": before}), member.user, limit=AT_ONCE)
        return page.rows, page.older

    for row in _every(read):
        session, assignee = row.session, row.standing.assignee
        yield (
            session.pk,
            session.visitor_name,
            session.whose,
            session.deployment.title,
            row.standing.status,
            session.owner,
            assignee.display_name if assignee else "",
            ", ".join(label.name for label in row.labels),
            session.language,
            session.preview,
            _time(session.created_at),
            _time(session.last_active_at),
        )


def _contacts(member: Member, given: QueryDict) -> Iterator[Row]:
    chosen = ContactListFilter(given).as_condition()
    for row in _every(lambda before: list_contacts(chosen, before=before, limit=AT_ONCE)):
        known = list(row.identities.all())
        by_kind = {kind: [each.value for each in known if each.kind == kind] for kind in IdentityKind}
        yield (
            row.pk,
            row.name,
            *(", ".join(by_kind[kind]) for kind in (IdentityKind.CUSTOMER, IdentityKind.EMAIL, IdentityKind.PHONE)),
            ", ".join(each.value for each in known if each.proved_by),
            row.source,
            json.dumps({name: each["value"] for name, each in sorted(row.attributes.items())}, ensure_ascii=False),
            _time(row.created_at),
            _time(row.last_seen_at),
        )


def _cards(member: Member, given: QueryDict) -> Iterator[Row]:
    chosen = CardFilter(
        state=_choice(CardStatus, given, "state"),
        risk=_choice(Risk, given, "risk"),
        kind=_choice(CardKind, given, "kind"),
    )
    for row in _every(lambda before: list_cards(chosen, before=before, limit=AT_ONCE)):
        decision = getattr(row, "decision", None)
        yield (
            row.pk,
            row.kind,
            row.risk,
            row.status,
            stored(row.intent),
            row.deployment.title if row.deployment else "",
            row.assignee.display_name if row.assignee else "",
            decision.verdict if decision else "",
            decision.user.display_name if decision and decision.user else "",
            row.payload_hash,
            _time(row.created_at),
            _time(row.expires_at),
            _time(row.settled_at),
        )


def _work(member: Member, given: QueryDict) -> Iterator[Row]:
    chosen = WorkFilter(status=_choice(WorkItemStatus, given, "status"), type=_choice(WorkItemType, given, "type"))
    for row in _every(lambda before: list_items(chosen, before=before, limit=AT_ONCE)):
        yield (
            row.pk,
            row.type,
            row.title,
            row.status,
            row.reason,
            row.deployment.title if row.deployment else "",
            row.subject,
            row.requested_by,
            row.attempts_made,
            row.plan_hash,
            _time(row.created_at),
            _time(row.updated_at),
        )


def _audit(member: Member, given: QueryDict) -> Iterator[Row]:
    chosen, chain = filter_from(given), member.tenant.pk
    condition = chosen.condition(chain) if chosen.is_active else None
    below: int | None = None
    while entries := newest_entries(chain, below=below, limit=AT_ONCE, events=chosen.events, where=condition):
        below = entries[-1].seq
        for row in entries:
            yield row.seq, _time(row.timestamp), row.event, row.actor, row.subject, row.data, row.entry_hash


def _members(member: Member, given: QueryDict) -> Iterator[Row]:
    for row in list_members():
        seen = row.__dict__["last_seen"]
        yield row.user.display_name, row.user.email, row.role, row.__dict__["has_factor"], _time(seen)


def _documents(member: Member, given: QueryDict) -> Iterator[Row]:
    """Of one `collection`, or of all."""
    rows = Document.objects.select_related("collection").order_by("collection__name", "source_ref")
    if given.get("collection"):
        rows = rows.filter(collection_id=require_id(str(given["collection"])))
    for row in rows.iterator(AT_ONCE):
        yield (
            row.pk,
            str(row.collection),
            row.collection.min_level,
            row.title,
            row.source_ref,
            row.url,
            _time(row.created_at),
            _time(row.updated_at),
        )


def _gaps(member: Member, given: QueryDict) -> Iterator[Row]:
    rows = GapTopic.objects.filter(status=_choice(GapStatus, given, "status") or GapStatus.OPEN)
    for row in rows.defer("centroid").iterator(AT_ONCE):
        dates = (_time(row.first_at), _time(row.last_at), _time(row.answered_at))
        yield row.pk, row.question, row.visitors, row.status, row.title, row.answer, *dates


LISTS: dict[str, ListExport] = {
    "conversations": ListExport(
        (
            *("id", "visitor", "customer", "chatbot", "state", "answered_by", "assignee", "labels", "language"),
            *("last_message", "created_at", "last_active_at"),
        ),
        _conversations,
    ),
    "contacts": ListExport(
        (
            *("id", "name", "customer_ids", "emails", "phones", "verified", "source", "attributes"),
            *("created_at", "last_seen_at"),
        ),
        _contacts,
    ),
    "cards": ListExport(
        (
            *("id", "kind", "risk", "state", "intent", "chatbot", "assignee", "verdict", "decided_by"),
            *("payload_hash", "created_at", "expires_at", "settled_at"),
        ),
        _cards,
    ),
    "work": ListExport(
        (
            *("id", "type", "title", "status", "reason", "chatbot", "customer", "requested_by", "attempts"),
            *("plan_hash", "created_at", "updated_at"),
        ),
        _work,
    ),
    "audit": ListExport(("seq", "time", "event", "actor", "subject", "data", "entry_hash"), _audit),
    "members": ListExport(
        ("name", "email", "role", "second_factor", "last_seen_at"), _members, roles_with(Capability.MANAGE_MEMBERS)
    ),
    "documents": ListExport(
        ("id", "collection", "level", "title", "source", "address", "created_at", "updated_at"),
        _documents,
        DECIDING_ROLES,
    ),
    "gaps": ListExport(
        (
            *("id", "question", "visitors", "status", "title", "answer"),
            *("first_asked_at", "last_asked_at", "answered_at"),
        ),
        _gaps,
        DECIDING_ROLES,
    ),
}


def _every(read: Callable[[str], tuple[Sequence[T], str]]) -> Iterator[T]:
    """The rows of all pages; `read` takes a cursor and returns a page and the next cursor, "" at the end."""
    before = ""
    while True:
        rows, before = read(before)
        yield from rows
        if not before:
            return


def _choice(enum: type[C], given: QueryDict, name: str) -> C | None:
    try:
        return enum(given.get(name, ""))
    except ValueError:
        return None


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat(timespec="seconds")
