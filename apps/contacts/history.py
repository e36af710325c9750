"""Conversations that were held in another system, as a history that staff read and search. No model reads them."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import F

from apps.contacts.models import Contact, ImportedConversation
from kernel.clock import now
from kernel.errors import NotFound

SHOWN = 50
# Of a conversation so many characters are searched; PostgreSQL indexes up to a megabyte of words.
_SEARCHED = 200_000


class Fields(TypedDict):
    """A conversation as it was exported."""

    subject: str
    state: str
    messages: list[dict[str, str]]
    started_at: datetime | None
    last_at: datetime | None


def imported(system: str, external_id: str) -> ImportedConversation | None:
    row: ImportedConversation | None = ImportedConversation.objects.filter(
        system=system, external_id=external_id
    ).first()
    return row


def is_same(row: ImportedConversation, fields: Fields) -> bool:
    return all(getattr(row, name) == value for name, value in fields.items())


def keep(contact: Contact, system: str, external_id: str, fields: Fields) -> None:
    """Store it, or store it again in place of what was imported before."""
    said = [fields["subject"], *(message["text"] for message in fields["messages"])]
    ImportedConversation.objects.update_or_create(
        system=system,
        external_id=external_id,
        defaults={**fields, "contact": contact, "text": "\n".join(said)[:_SEARCHED], "imported_at": now()},
    )


def conversations_of(contact: Contact) -> list[ImportedConversation]:
    """The newest of a contact and of those merged into it, without their words."""
    rows = ImportedConversation.objects.filter(contact=contact) | ImportedConversation.objects.filter(
        contact__merged_into=contact
    )
    rows |= ImportedConversation.objects.filter(contact__merged_into__merged_into=contact)
    return list(rows.defer("messages", "text").order_by(F("last_at").desc(nulls_last=True), "pk")[:SHOWN])


def conversation(conversation_id: UUID) -> ImportedConversation:
    """Raises `NotFound`."""
    row: ImportedConversation | None = (
        ImportedConversation.objects.select_related("contact").filter(pk=conversation_id).first()
    )
    if row is None:
        raise NotFound()
    return row


def search(words: str, *, limit: int = 5) -> list[ImportedConversation]:
    """Those in which all of these words were said, the newest first."""
    words = words.replace("\0", " ").strip()[:200]
    if not words:
        return []
    query = SearchQuery(words, config="simple", search_type="websearch")
    rows = ImportedConversation.objects.annotate(found=SearchVector("text", config="simple")).filter(found=query)
    rows = rows.select_related("contact").defer("messages", "text")
    return list(rows.order_by(F("last_at").desc(nulls_last=True), "pk")[:limit])
