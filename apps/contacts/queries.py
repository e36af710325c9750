"""Contacts for staff and programs: lists, one contact with what belongs to it, and who may be the same person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.contacts.enums import ContactSource, IdentityKind
from apps.contacts.models import Contact, ContactIdentity, ContactMerge, ContactNote, Erasure
from apps.contacts.rules import UNDO_FOR
from apps.sessions.models import ChatSession
from apps.visitors.models import Consent
from kernel.clock import now
from kernel.errors import NotFound
from kernel.pagination import read_page

PAGE, SHOWN = 50, 50
MAX_SEARCH = 120


@dataclass(frozen=True)
class ContactFilter:
    """Which contacts to list; None and "" ask for everyone. `search`: part of a name, or the beginning of an address
    or id. `verified`: whether an identity of theirs is proved. `since`: seen from then on."""

    search: str = ""
    verified: bool | None = None
    source: ContactSource | None = None
    customer: str = ""
    email: str = ""
    since: datetime | None = None

    def condition(self) -> Q:
        chosen = Q(merged_into=None)
        if words := self.search.replace("\0", "").strip()[:MAX_SEARCH]:
            chosen &= Q(name__icontains=words) | _known_by(Q(value__istartswith=words))
        if self.verified is not None:
            proved = _known_by(Q(proved_at__isnull=False))
            chosen &= proved if self.verified else ~proved
        if self.source:
            chosen &= Q(source=self.source)
        if self.customer:
            chosen &= _known_by(Q(kind=IdentityKind.CUSTOMER, value=self.customer))
        if self.email:
            chosen &= _known_by(Q(kind=IdentityKind.EMAIL, value=self.email.strip().lower()))
        if self.since:
            chosen &= Q(last_seen_at__gte=self.since)
        return chosen


def list_contacts(chosen: ContactFilter, *, before: str = "", limit: int = PAGE) -> tuple[list[Contact], str]:
    """Contacts with their identities, the last seen first, and the cursor of the page after them."""
    return read_page(contacts(chosen), before=before, limit=limit, moment="last_seen_at")


def contacts(chosen: ContactFilter) -> QuerySet[Contact]:
    rows: QuerySet[Contact] = Contact.objects.filter(chosen.condition()).prefetch_related("identities")
    return rows


def contact(contact_id: UUID) -> Contact:
    """One contact with its identities; of one that was merged, the contact it is shown as. Raises `NotFound`."""
    for _ in range(10):
        row: Contact | None = Contact.objects.filter(pk=contact_id).prefetch_related("identities").first()
        if row is None:
            raise NotFound()
        if row.merged_into_id is None:
            return row
        contact_id = row.merged_into_id
    raise NotFound()


def customers_of(row: Contact) -> list[str]:
    """The company's own ids of a contact."""
    return [each.value for each in row.identities.all() if each.kind == IdentityKind.CUSTOMER]


def conversations_of(row: Contact) -> QuerySet[ChatSession]:
    """Those in which one of the contact's customer ids was verified; nothing a visitor has only said leads here."""
    rows: QuerySet[ChatSession] = ChatSession.objects.filter(
        last_customer__in=customers_of(row), seq__gt=0, is_test=False
    ).select_related("deployment", "desk", "desk__assignee", "owner_user")
    return rows


def conversations_page(row: Contact, *, before: str = "", limit: int = SHOWN) -> tuple[list[ChatSession], str]:
    return read_page(conversations_of(row), before=before, limit=limit, moment="last_active_at")


def consents_of(row: Contact) -> list[Consent]:
    """What was agreed to in the contact's conversations, newest first."""
    theirs = ChatSession.objects.filter(last_customer__in=customers_of(row)).values("pk")
    return list(Consent.objects.filter(session_id__in=theirs).order_by("-given_at")[:SHOWN])


def notes_of(row: Contact) -> list[ContactNote]:
    """Newest first."""
    return list(ContactNote.objects.filter(contact=row).select_related("author").order_by("-created_at")[:SHOWN])


def merges_of(row: Contact) -> list[ContactMerge]:
    """Merges that can be undone, newest first."""
    rows = ContactMerge.objects.filter(kept=row, undone_at=None, created_at__gte=now() - UNDO_FOR)
    return list(rows.select_related("merged").order_by("-created_at"))


def duplicates_of(row: Contact) -> list[Contact]:
    """Other contacts with the same address or number, said or proved."""
    pairs = Q(pk=None)
    for each in row.identities.all():
        pairs |= Q(kind=each.kind, value=each.value)
    same = ContactIdentity.objects.filter(pairs).exclude(contact=row).values("contact_id")
    return list(Contact.objects.filter(pk__in=same, merged_into=None).prefetch_related("identities")[:10])


def main_identities(rows: Iterable[Contact]) -> dict[UUID, dict[str, ContactIdentity]]:
    """By contact and kind the identity to show: a proved one before others."""
    shown: dict[UUID, dict[str, ContactIdentity]] = {}
    for row in rows:
        by_kind = shown.setdefault(row.pk, {})
        for each in row.identities.all():
            if each.kind not in by_kind or (each.proved_by and not by_kind[each.kind].proved_by):
                by_kind[each.kind] = each
    return shown


def is_being_erased(*references: str) -> bool:
    """True if the erasure of one of these people (`Erasure.reference`) was requested and has not ended."""
    return bool(Erasure.objects.filter(reference__in=references, ended_at=None).exists())


def _known_by(which: Q) -> Q:
    # Not correlated: PostgreSQL reads the identities once, also beside another condition.
    return Q(pk__in=ContactIdentity.objects.filter(which).values("contact_id"))
