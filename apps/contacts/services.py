"""Keep contacts: from verified visitors and channels, from staff and programs; merge two and undo it.

Inside the tenant's scope. A contact found by what a visitor proved is theirs; one found by an unverified statement is
never handed to anybody. What the company's own server or team said of a person is not overwritten by a page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.contacts import queries, rules
from apps.contacts.enums import ContactSource, IdentityKind, Proof
from apps.contacts.models import Attribute, Contact, ContactIdentity, ContactMerge, ContactNote
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.visitors.forgetting import ANSWERING_ROLES
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext


def require_editor(user: User | None) -> None:
    """Raises 403 `forbidden_role` for a member who only looks; the scopes of a program (None) were checked before."""
    if user is not None:
        require_role(user, ANSWERING_ROLES)


def identify(kind: str, value: str, *, proved_by: Proof, name: str = "") -> Contact:
    """The contact to whom this proved identity belongs, created if there is none; for channels and verified visitors.

    An identity that others have only stated is not found: the person who proves it gets a contact of their own, and
    staff may merge the two. `value` is as `rules` writes it.
    """
    if not proved_by:
        raise ValueError("only a proved identity says whose contact this is")
    moment = now()
    identity = _belongs_to(kind, value)
    if identity is None:
        contact = Contact.objects.create(
            name=name[: rules.MAX_NAME], source=ContactSource.CHAT, created_at=moment, last_seen_at=moment
        )
        try:
            with transaction.atomic():
                _add_identity(contact, kind, value, proved_by)
        except IntegrityError:
            # Of two conversations that begin at once, the other one was first.
            contact.delete()
            identity = ContactIdentity.objects.select_related("contact").get(_whose(kind, value))
        else:
            data = {"kind": str(kind), "source": ContactSource.CHAT.value}
            record(AuditEvent.CONTACT_ADDED, subject=f"contact:{contact.pk}", data=data)
            return contact
    contact = identity.contact
    if not identity.proved_by or proved_by == Proof.SIGNED != identity.proved_by:
        identity.proved_by, identity.proved_at = proved_by, moment
        identity.save(update_fields=["proved_by", "proved_at"])
    contact.last_seen_at = moment
    contact.name = name[: rules.MAX_NAME] or contact.name
    contact.save(update_fields=["last_seen_at", "name"])
    return contact


def add_proved(contact: Contact, kind: str, value: str, proved_by: Proof) -> bool:
    """Keep what a known contact proved besides; False if it is another contact's already."""
    known = _belongs_to(kind, value)
    if known is not None:
        return known.contact_id == contact.pk
    _add_identity(contact, kind, value, proved_by)
    return True


def stated(contact: Contact, kind: str, value: str) -> None:
    """Keep what was said of a contact, unproved. `value` is as `rules` writes it."""
    _add_identity(contact, kind, value, Proof.NONE)


def describe(contact: Contact, given: Mapping[str, object], *, proved: bool) -> None:
    """Keep attributes. What is not `proved` changes nothing that is."""
    values = rules.plain_attributes(given)
    kept = dict(contact.attributes)
    for name, value in values.items():
        known = kept.get(name)
        if (known is None and len(kept) >= rules.MAX_ATTRIBUTES) or (known and known["proved"] and not proved):
            continue
        kept[name] = {"value": value, "proved": proved}
    if kept != contact.attributes:
        contact.attributes = kept
        contact.save(update_fields=["attributes"])


def save_contact(
    contact_id: UUID | None,
    *,
    actor: str,
    source: ContactSource,
    name: str | None = None,
    emails: Sequence[str] | None = None,
    phones: Sequence[str] | None = None,
    customer: str | None = None,
    attributes: Mapping[str, object] | None = None,
    versions: Collection[str] = (),
) -> Contact:
    """A new contact, or changes of one: what is None stays. `emails` and `phones` are all of it afterwards, save that
    proved ones stay; an attribute with the value None is removed. `versions`: it must be at one of these.

    Raises `SilasError`: 400 `contact_field`, 409 `contact_known`, 412 `contact_changed`; `NotFound`.
    """
    contact = _new(source) if contact_id is None else _locked(contact_id)
    if versions and str(contact.version) not in versions:
        raise SilasError(ErrorCode.CONTACT_CHANGED)
    if name is not None:
        contact.name = _checked(" ".join(name.replace("\0", " ").split()), rules.MAX_NAME)
    if attributes is not None:
        contact.attributes = _edited(contact, attributes)
    if contact_id is not None:
        contact.version += 1
    contact.save()
    if customer:
        _claim_customer(contact, customer)
    for kind, values in ((IdentityKind.EMAIL, emails), (IdentityKind.PHONE, phones)):
        if values is not None:
            _replace_stated(contact, kind, values)
    event = AuditEvent.CONTACT_ADDED if contact_id is None else AuditEvent.CONTACT_CHANGED
    record(event, actor=actor, subject=f"contact:{contact.pk}", data={"source": source.value})
    return contact


def merge(kept_id: UUID, merged_id: UUID, *, actor: str) -> ContactMerge:
    """Show `merged` as `kept`: identities, notes and missing attributes come over. It grants no rights.

    Raises 409 `contact_merge_self`, `erasure_running`; `NotFound` for contacts that are unknown, or merged already.
    """
    if kept_id == merged_id:
        raise SilasError(ErrorCode.CONTACT_MERGE_SELF)
    both = {row.pk: row for row in _lock(Q(pk__in=(kept_id, merged_id), merged_into=None))}
    if len(both) != 2:
        raise NotFound()
    if queries.is_being_erased(*(f"contact:{pk}" for pk in both)):
        raise SilasError(ErrorCode.ERASURE_RUNNING)
    kept, merged = both[kept_id], both[merged_id]
    known = set(kept.identities.values_list("kind", "value"))
    identities = [row for row in merged.identities.all() if (row.kind, row.value) not in known or row.proved_by]
    moved = [row.pk for row in identities]
    # A proved one counts more than the same one that was only said.
    stated = kept.identities.filter(proved_at=None)
    replaced = [twin for row in identities for twin in stated.filter(kind=row.kind, value=row.value)]
    for twin in replaced:
        twin.delete()
    ContactIdentity.objects.filter(pk__in=moved).update(contact=kept)
    notes = list(ContactNote.objects.filter(contact=merged).values_list("pk", flat=True))
    ContactNote.objects.filter(pk__in=notes).update(contact=kept)
    added = [name for name in merged.attributes if name not in kept.attributes]
    kept.attributes = {**merged.attributes, **kept.attributes}
    named = not kept.name and bool(merged.name)
    kept.name = kept.name or merged.name
    kept.last_seen_at = max(kept.last_seen_at, merged.last_seen_at)
    kept.version += 1
    kept.save()
    merged.merged_into = kept
    merged.version += 1
    merged.save(update_fields=["merged_into", "version"])
    row = ContactMerge.objects.create(
        kept=kept,
        merged=merged,
        by=actor,
        created_at=now(),
        moved={
            "identities": [str(pk) for pk in moved],
            "restored": [[twin.kind, twin.value] for twin in replaced],
            "notes": [str(pk) for pk in notes],
            "attributes": added,
            "name": named,
        },
    )
    data = {"merged": str(merged.pk), "identities": len(moved), "notes": len(notes)}
    record(AuditEvent.CONTACTS_MERGED, actor=actor, subject=f"contact:{kept.pk}", data=data)
    return row


def unmerge(kept_id: UUID, merge_id: UUID, *, actor: str) -> Contact:
    """Undo a merge: what came over goes back, and what was done since stays. Returns the contact that is back.

    Raises 409 `contact_merge_ended`: undone already, older than `rules.UNDO_FOR`, or the contact was merged on;
    409 `erasure_running`; `NotFound`.
    """
    row: ContactMerge | None = ContactMerge.objects.filter(pk=merge_id, kept_id=kept_id).first()
    if row is None:
        raise NotFound()
    both = {each.pk: each for each in _lock(Q(pk__in=(row.kept_id, row.merged_id)))}
    kept, merged = both[row.kept_id], both[row.merged_id]
    row.refresh_from_db()
    if queries.is_being_erased(f"contact:{kept.pk}", f"contact:{merged.pk}"):
        raise SilasError(ErrorCode.ERASURE_RUNNING)
    if row.undone_at or row.created_at < now() - rules.UNDO_FOR or kept.merged_into_id:
        raise SilasError(ErrorCode.CONTACT_MERGE_ENDED)
    ContactIdentity.objects.filter(pk__in=row.moved["identities"], contact=kept).update(contact=merged)
    for kind, value in row.moved["restored"]:
        _add_identity(kept, kind, value, Proof.NONE)
    ContactNote.objects.filter(pk__in=row.moved["notes"], contact=kept).update(contact=merged)
    for name in row.moved["attributes"]:
        if kept.attributes.get(name) == merged.attributes.get(name):
            kept.attributes.pop(name, None)
    if row.moved["name"] and kept.name == merged.name:
        kept.name = ""
    kept.version += 1
    kept.save()
    merged.merged_into = None
    merged.version += 1
    merged.save(update_fields=["merged_into", "version"])
    row.undone_at = now()
    row.save(update_fields=["undone_at"])
    data = {"merged": str(merged.pk)}
    record(AuditEvent.CONTACTS_UNMERGED, actor=actor, subject=f"contact:{kept.pk}", data=data)
    return merged


def add_note(contact_id: UUID, text: str, *, actor: str, author: User | None = None) -> ContactNote:
    contact = _locked(contact_id)
    text = _checked(text.replace("\0", "").strip(), rules.MAX_NOTE, shortest=1)
    note = ContactNote.objects.create(contact=contact, author=author, text=text, created_at=now())
    record(AuditEvent.CONTACT_NOTED, actor=actor, subject=f"contact:{contact.pk}")
    return note


def _whose(kind: str, value: str) -> Q:
    """The identity that belongs to one contact, as the constraint `contact_identity_is_ones` has it."""
    alone = Q() if kind in (IdentityKind.CUSTOMER, IdentityKind.IMPORTED) else Q(proved_at__isnull=False)
    return alone & Q(kind=kind, value=value)


def _belongs_to(kind: str, value: str) -> ContactIdentity | None:
    rows = ContactIdentity.objects.select_related("contact").filter(_whose(kind, value))
    row: ContactIdentity | None = rows.first()
    return row


def _add_identity(contact: Contact, kind: str, value: str, proved_by: Proof) -> None:
    """Add it, or prove what they have only said so far."""
    moment = now()
    proof = {"proved_by": proved_by, "proved_at": moment if proved_by else None}
    row, is_new = ContactIdentity.objects.get_or_create(
        contact=contact, kind=kind, value=value, defaults={**proof, "created_at": moment}
    )
    if not is_new and proved_by and not row.proved_by:
        ContactIdentity.objects.filter(pk=row.pk).update(**proof)


def _new(source: ContactSource) -> Contact:
    moment = now()
    return Contact(source=source, created_at=moment, last_seen_at=moment)


def _lock(which: Q) -> list[Contact]:
    """In the order of their ids, so that two who merge the same two wait in line."""
    return list(Contact.objects.select_for_update(of=("self",), no_key=True).filter(which).order_by("pk"))


def _locked(contact_id: UUID) -> Contact:
    rows = _lock(Q(pk=contact_id, merged_into=None))
    if not rows:
        raise NotFound()
    return rows[0]


def _edited(contact: Contact, given: Mapping[str, object]) -> dict[str, Attribute]:
    values = rules.plain_attributes({name: value for name, value in given.items() if value is not None})
    wrong = sorted(name for name, value in given.items() if value is not None and values.get(name) != value)
    if wrong:
        raise _bad_field("attributes", gettext("An attribute is a short text, a number, or true or false."))
    edited = {name: value for name, value in contact.attributes.items() if given.get(name, value) is not None}
    edited.update({name: {"value": value, "proved": True} for name, value in values.items()})
    if len(edited) > rules.MAX_ATTRIBUTES:
        raise _bad_field("attributes", gettext("Use up to {most} attributes.").format(most=rules.MAX_ATTRIBUTES))
    return edited


def _claim_customer(contact: Contact, customer: str) -> None:
    value = _checked(customer.strip(), rules.MAX_CUSTOMER)
    known = _belongs_to(IdentityKind.CUSTOMER, value)
    if known is not None and known.contact_id != contact.pk:
        raise SilasError(ErrorCode.CONTACT_KNOWN, extra={"contact": str(known.contact_id)})
    try:
        with transaction.atomic():
            _add_identity(contact, IdentityKind.CUSTOMER, value, Proof.NONE)
    except IntegrityError:
        raise SilasError(ErrorCode.CONTACT_KNOWN) from None


def _replace_stated(contact: Contact, kind: str, values: Sequence[str]) -> None:
    """Proved ones stay in every case."""
    plain = rules.plain_email if kind == IdentityKind.EMAIL else rules.plain_phone
    wanted = {written: plain(written) for written in values if written.strip()}
    if wrong := [written for written, value in wanted.items() if not value]:
        told = (
            gettext("{value} is no email address.")
            if kind == IdentityKind.EMAIL
            else gettext("{value} is no phone number. Write it with its country code, as in +49 30 901820.")
        )
        raise _bad_field(str(kind), told.format(value=wrong[0][:80]))
    if len(wanted) > rules.MAX_IDENTITIES:
        raise _bad_field(str(kind), gettext("Use up to {most} of them.").format(most=rules.MAX_IDENTITIES))
    stated = ContactIdentity.objects.filter(contact=contact, kind=kind, proved_at=None)
    stated.exclude(value__in=wanted.values()).delete()
    for value in wanted.values():
        _add_identity(contact, kind, value, Proof.NONE)


def _checked(text: str, longest: int, *, shortest: int = 0) -> str:
    if not shortest <= len(text) <= longest or "\0" in text:
        raise _bad_field(
            "text", gettext("Use {shortest} to {longest} characters.").format(shortest=shortest, longest=longest)
        )
    return text


def _bad_field(field: str, message: str) -> SilasError:
    return SilasError(ErrorCode.CONTACT_FIELD, message, extra={"field": field})
