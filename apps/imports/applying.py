"""Apply one record of an export, or say what applying it would do. Applied twice, it changes nothing.

A record is known by its id in the other system. What is imported is what others said: identities are not proved by it,
attributes are marked so, and conversations are a history that staff read and no model does.
"""

from __future__ import annotations

from datetime import datetime

from apps.contacts import history, rules
from apps.contacts.enums import ContactSource, IdentityKind
from apps.contacts.history import Fields
from apps.contacts.models import Contact, ContactIdentity
from apps.contacts.services import describe, stated
from apps.imports.enums import Outcome, Reason
from apps.imports.schemas import ContactRecord, ConversationRecord, ReplyRecord
from apps.inbox.labels_and_replies import MAX_REPLIES, save_reply
from apps.inbox.models import CannedReply
from apps.inbox.staff import ApiClient
from kernel.clock import now

Result = tuple[Outcome, Reason | None]


def apply_contact(record: ContactRecord, system: str, *, write: bool) -> Result:
    """Fill what is missing of a known contact; the name and attributes of one that came by import follow the export."""
    contact = _known(system, record.external_id)
    joined = contact is None and bool(record.customer)
    if joined:
        contact = _by(IdentityKind.CUSTOMER, record.customer)
    if contact is None:
        if write:
            moment = now()
            contact = Contact.objects.create(
                name=record.name, source=ContactSource.IMPORT, created_at=moment, last_seen_at=moment
            )
            _fill(contact, record, system)
        return Outcome.CREATED, None
    if not _changes(contact, record, system):
        return Outcome.UNCHANGED, None
    if write:
        _fill(contact, record, system)
    return Outcome.UPDATED, None


def apply_conversation(record: ConversationRecord, system: str, *, write: bool) -> Result:
    """Keep a conversation as history of its contact. Its contact stands before it in the file."""
    contact = _known(system, record.contact)
    messages: list[dict[str, str]] = [message.model_dump() for message in record.messages]
    if contact is None:
        return (Outcome.SKIPPED, Reason.NO_CONTACT) if write else (Outcome.CREATED, None)
    known = history.imported(system, record.external_id)
    fields: Fields = {
        "subject": record.subject,
        "state": record.state,
        "messages": messages,
        "started_at": _moment(record.started_at),
        "last_at": _moment(record.messages[-1].at) or _moment(record.started_at),
    }
    if known is not None and history.is_same(known, fields):
        return Outcome.UNCHANGED, None
    if write:
        history.keep(contact, system, record.external_id, fields)
    return (Outcome.UPDATED if known else Outcome.CREATED), None


def apply_reply(record: ReplyRecord, *, actor: str, write: bool) -> Result:
    """A name that is in use keeps its text: a teammate may have changed it."""
    if not record.name:
        return Outcome.SKIPPED, Reason.NO_ID
    known: CannedReply | None = CannedReply.objects.filter(name__iexact=record.name).first()
    if known is not None:
        same = known.text == record.text
        return (Outcome.UNCHANGED, None) if same else (Outcome.SKIPPED, Reason.NAME_TAKEN)
    if CannedReply.objects.count() >= MAX_REPLIES:
        return Outcome.SKIPPED, Reason.TOO_MANY
    if write:
        save_reply(ApiClient(actor), name=record.name, text=record.text)
    return Outcome.CREATED, None


def _by(kind: IdentityKind, value: str) -> Contact | None:
    row = ContactIdentity.objects.select_related("contact").filter(kind=kind, value=value).first()
    return row.contact if row else None


def _known(system: str, external_id: str) -> Contact | None:
    return _by(IdentityKind.IMPORTED, f"{system}:{external_id}")


def _identities(record: ContactRecord, system: str) -> list[tuple[IdentityKind, str]]:
    written = [
        (IdentityKind.IMPORTED, f"{system}:{record.external_id}"),
        (IdentityKind.EMAIL, rules.plain_email(record.email)),
        (IdentityKind.PHONE, rules.plain_phone(record.phone)),
    ]
    owner = _by(IdentityKind.CUSTOMER, record.customer) if record.customer else None
    if record.customer and (owner is None or owner == _known(system, record.external_id)):
        written.append((IdentityKind.CUSTOMER, record.customer))
    return [(kind, value) for kind, value in written if value]


def _changes(contact: Contact, record: ContactRecord, system: str) -> bool:
    known = set(ContactIdentity.objects.filter(contact=contact).values_list("kind", "value"))
    if any((kind, value) not in known for kind, value in _identities(record, system)):
        return True
    if _name(contact, record) != contact.name:
        return True
    given = rules.plain_attributes(record.attributes)
    kept = {name: each["value"] for name, each in contact.attributes.items()}
    proved = {name for name, each in contact.attributes.items() if each["proved"]}
    return any(kept.get(name) != value for name, value in given.items() if name not in proved) and (
        len(kept) < rules.MAX_ATTRIBUTES or bool(given.keys() & kept.keys())
    )


def _name(contact: Contact, record: ContactRecord) -> str:
    follows = contact.source == ContactSource.IMPORT or not contact.name
    return record.name if record.name and follows else contact.name


def _fill(contact: Contact, record: ContactRecord, system: str) -> None:
    for kind, value in _identities(record, system):
        stated(contact, kind, value)
    name = _name(contact, record)
    if name != contact.name:
        contact.name = name
        contact.save(update_fields=["name"])
    describe(contact, record.attributes, proved=False)


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
