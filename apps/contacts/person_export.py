"""Export everything about one person as a ZIP: a JSON file a kind, the files they sent and received, and a manifest.

A person is a contact with those merged into it, or a visitor without a contact, known by one conversation. What other
people said in the same conversation is left out: in one that several customers had one after the other, only what was
recorded while this customer was the verified one is theirs. Rows are streamed from the database into the archive, so
memory does not grow with them; files are copied after the transaction.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any
from uuid import UUID

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.db.models import Q, QuerySet

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from apps.contacts import queries
from apps.contacts.enums import IdentityKind
from apps.contacts.models import Contact, ContactIdentity, Erasure
from apps.contacts.personal_data import EXPORTED, LEFT_OUT, Exported, Link, kind_of
from apps.memory.queries import of_customer
from apps.memory.schemas import conversation_scope
from apps.sessions.models import ChatSession
from apps.tenants.models import Tenant
from apps.visitors import file_storage
from apps.visitors.models import VisitorFile
from kernel.canonical import canonical_json
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id, tenant_scope

FORMAT, VERSION = "silas-person", 1
_AT_ONCE = 500
_NO_FOLDERS = str.maketrans("/\\", "__")
_AUDIT_FIELDS = ("seq", "timestamp", "event", "subject", "actor", "data", "entry_hash")
_README = """This archive holds what {company} stores about {reference}, as of {at}.

Each JSON file is a list of rows of one kind; files/ holds the files that were sent and received. manifest.json says how
many rows each file has, with its SHA-256, and what is left out and why.
"""
_Interval = tuple[datetime, datetime | None]


@dataclass(frozen=True)
class Person:
    """`reference`: `contact:<id>` or `session:<id>`, as the audit log names them. `sessions`: conversations that are
    theirs alone. `shared`: those that another customer had as well, with the times in which they were theirs."""

    reference: str
    contacts: tuple[UUID, ...] = ()
    customers: tuple[str, ...] = ()
    sessions: tuple[UUID, ...] = ()
    shared: Mapping[UUID, tuple[_Interval, ...]] = field(default_factory=dict)

    def as_kept(self) -> dict[str, object]:
        """As JSON, to be read by `of`."""
        spans = {str(pk): [[at and at.isoformat() for at in span] for span in own] for pk, own in self.shared.items()}
        return {
            "reference": self.reference,
            "contacts": [str(pk) for pk in self.contacts],
            "customers": list(self.customers),
            "sessions": [str(pk) for pk in self.sessions],
            "shared": spans,
        }

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Person:
        shared: dict[UUID, tuple[_Interval, ...]] = {
            UUID(pk): tuple(
                (datetime.fromisoformat(since), datetime.fromisoformat(until) if until else None)
                for since, until in spans
            )
            for pk, spans in kept["shared"].items()
        }
        contacts, sessions = (tuple(UUID(pk) for pk in kept[name]) for name in ("contacts", "sessions"))
        return cls(kept["reference"], contacts, tuple(kept["customers"]), sessions, shared)

    def covers(self, other: Person) -> bool:
        """True if everything of the other person is this person's too."""
        return (
            {*other.contacts} <= {*self.contacts}
            and {*other.customers} <= {*self.customers}
            and {*other.sessions, *other.shared} <= {*self.sessions, *self.shared}
        )

    def widened(self, other: Person) -> Person:
        """This person with what is the other's too; of a conversation that both have, what the other has of it."""
        sessions = {*self.sessions}.difference(other.shared).union(other.sessions)
        return Person(
            self.reference,
            tuple(sorted({*self.contacts, *other.contacts})),
            tuple(sorted({*self.customers, *other.customers})),
            tuple(sorted(sessions)),
            {pk: own for pk, own in {**self.shared, **other.shared}.items() if pk not in sessions},
        )

    def overlaps(self, other: Person) -> bool:
        """True if they share a contact, a customer ID or a conversation of their own. Two customers who used one
        conversation in turn share none."""
        theirs = {*other.contacts, *other.customers, *other.sessions}
        return not theirs.isdisjoint({*self.contacts, *self.customers, *self.sessions})

    def in_conversations(self, path: str, moment: str) -> Q:
        theirs = Q(**{f"{path}__in": self.sessions})
        for session, intervals in self.shared.items() if moment else ():
            for since, until in intervals:
                during = Q(**{path: session, f"{moment}__gte": since})
                theirs |= during & Q(**{f"{moment}__lt": until}) if until else during
        return theirs

    def in_scopes(self) -> Q:
        """Memories: their own, what was said to them, and what was said before they were verified."""
        theirs = Q(scope__in=[str(conversation_scope(session)) for session in self.sessions])
        for customer in self.customers:
            theirs |= of_customer(customer)
        return theirs

    def rows(self, kind: Exported) -> QuerySet[Any]:
        order = [kind.moment] if kind.moment else []
        rows: QuerySet[Any] = apps.get_model(kind.model)._default_manager.filter(self._condition(kind))
        return rows.order_by(*order, "pk")

    def _condition(self, kind: Exported) -> Q:
        match kind.link:
            case Link.CONTACT:
                return Q(**{f"{kind.path}__in": self.contacts})
            case Link.SESSION:
                return self.in_conversations(kind.path, kind.moment)
            case Link.CUSTOMER:
                return Q(**{f"{kind.path}__in": self.customers})
            case Link.SCOPE:
                return self.in_scopes()
            case Link.WORK:
                work = apps.get_model("work.WorkItem")
                items = work._default_manager.filter(self._work()).values("pk")
                own = self.in_conversations("session_id", kind.moment)
                return Q(**{f"{kind.path}__in": items}) | own

    def _work(self) -> Q:
        """Work for this customer, and work that their conversations began and that names no other customer."""
        begun = self.in_conversations("session_id", "created_at") & Q(subject__in=("", *self.customers))
        return Q(subject__in=self.customers) | begun

    def audit_entries(self) -> QuerySet[AuditEntry]:
        """What the audit log says of them, their conversations, work and cards, as members see it."""
        chain = AuditEntry.objects.filter(chain=current_tenant_id())
        cards, work = kind_of("approvals.Card"), kind_of("work.WorkItem")
        subjects = [f"contact:{pk}" for pk in self.contacts] + [f"session:{pk}" for pk in self.sessions]
        subjects += [f"card:{pk}" for pk in self.rows(cards).values_list("pk", flat=True)]
        subjects += [f"work:{pk}" for pk in self.rows(work).values_list("pk", flat=True)]
        about = Q(subject__in=subjects)
        for session, intervals in self.shared.items():
            for since, until in intervals:
                during = Q(subject=f"session:{session}", timestamp__gte=since)
                about |= during & Q(timestamp__lt=until) if until else during
        rows: QuerySet[AuditEntry] = chain.filter(about).order_by("seq")
        return rows


@dataclass
class ExportReport:
    """Whose archive it is, and how many rows of each kind it holds."""

    reference: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(self.counts.values())


def person_of_contact(contact_id: UUID) -> Person:
    """A contact with those merged into it; of one that was merged, the contact it is shown as. Raises `NotFound`."""
    row = queries.contact(contact_id)
    contacts = [row.pk]
    while more := list(
        Contact.objects.filter(merged_into__in=contacts).exclude(pk__in=contacts).values_list("pk", flat=True)
    ):
        contacts += more
    known = ContactIdentity.objects.filter(contact_id__in=contacts)
    customers = tuple(known.filter(kind=IdentityKind.CUSTOMER).values_list("value", flat=True))
    candidates = _verified_for(customers) | _through_channels(known, customers)
    return _person(f"contact:{row.pk}", tuple(contacts), customers, candidates)


def person_of_visitor(session_id: UUID) -> Person:
    """The visitor of one conversation; the contact, if they were verified as one. Raises `NotFound`."""
    session: ChatSession | None = ChatSession.objects.filter(pk=session_id).first()
    if session is None:
        raise NotFound()
    if not session.whose:
        return Person(f"session:{session_id}", sessions=(session_id,))
    whose = ContactIdentity.objects.filter(kind=IdentityKind.CUSTOMER, value=session.whose).first()
    if whose is not None:
        return person_of_contact(whose.contact_id)
    customers = (session.whose,)
    return _person(f"session:{session_id}", (), customers, _verified_for(customers))


def export_person(find: Callable[[], Person], tenant_id: UUID, out: IO[bytes], *, actor: str) -> ExportReport:
    """Write the archive of the person that `find()` names to `out`, and record it. Outside of any scope.

    Raises what `find` raises, and 409 `erasure_running`; nothing is recorded then."""
    report, digests = ExportReport(), {}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        with tenant_scope(tenant_id):
            person = find()
            if not lock_person(person, shared=True) or running_erasure_of(person) is not None:
                raise SilasError(ErrorCode.ERASURE_RUNNING)
            for kind in EXPORTED:
                rows = person.rows(kind).values(*kind.fields).iterator(_AT_ONCE)
                report.counts[kind.file], digests[f"{kind.file}.json"] = _write(archive, kind.file, rows)
            entries = person.audit_entries().values(*_AUDIT_FIELDS).iterator(_AT_ONCE)
            report.counts["audit_log"], digests["audit_log.json"] = _write(archive, "audit_log", entries)
            files = [(row.pk, row.name, row.stored_name) for row in _files(person)]
            report.reference = person.reference
            company = Tenant.objects.get(pk=tenant_id).name
        missing = [name for name in _copy_files(archive, files, digests) if name]
        at = now()
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "person": person.reference,
            "exported_at": at,
            "counts": report.counts,
            "files": len(files) - len(missing),
            "missing_files": missing,
            "sha256": digests,
            "left_out": {model: str(reason) for model, reason in sorted(LEFT_OUT.items())},
        }
        archive.writestr("README.txt", _README.format(company=company, reference=person.reference, at=at.isoformat()))
        archive.writestr("manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False, cls=DjangoJSONEncoder))
    data = {"rows": report.rows, "files": len(files) - len(missing)}
    with tenant_scope(tenant_id):
        record(AuditEvent.PERSON_EXPORTED, actor=actor, subject=person.reference, data=data)
    return report


def lock_person(person: Person, *, shared: bool) -> bool:
    """Until the transaction ends, keep an erasure from running beside an export; False if the other one runs. A person
    may be known by several conversations, so their customer IDs are locked as well."""
    statement = "SELECT pg_try_advisory_xact_lock_shared" if shared else "SELECT pg_try_advisory_xact_lock"
    names = [person.reference, *(f"customer:{customer}" for customer in sorted(person.customers))]
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"{statement}(hashtextextended(%s, 0))", [f"person:{current_tenant_id()}:{name}"])
            if not cursor.fetchone()[0]:
                return False
    return True


def lock_erasure_requests() -> None:
    """Until the transaction ends, keep other requests for erasures of this company waiting."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"erasures:{current_tenant_id()}"])


def running_erasure_of(person: Person) -> Erasure | None:
    """The erasure of this person that has not ended: one that covers them, or one with their reference, which may lack
    what became theirs since. Raises 409 `erasure_running` if another one covers a part of them."""
    same: Erasure | None = None
    for row in Erasure.objects.filter(ended_at=None):
        covered = Person.of(row.person)
        if covered.covers(person):
            return row
        if row.reference == person.reference:
            same = row
        elif covered.overlaps(person):
            raise SilasError(ErrorCode.ERASURE_RUNNING)
    return same


def _verified_for(customers: tuple[str, ...]) -> set[UUID]:
    """Conversations that are theirs, and those that the audit log says were, before another customer was verified."""
    now_theirs = ChatSession.objects.filter(Q(customer__in=customers) | Q(last_customer__in=customers))
    found = set(now_theirs.values_list("pk", flat=True))
    for customer in customers:
        named = canonical_json({"customer": customer})[1:-1]
        rises = AuditEntry.objects.filter(
            chain=current_tenant_id(), event=AuditEvent.LEVEL_RAISED, data__contains=named
        )
        found |= {UUID(subject.partition(":")[2]) for subject in rises.values_list("subject", flat=True)}
    return found


def _through_channels(known: QuerySet[ContactIdentity], customers: tuple[str, ...]) -> set[UUID]:
    """Conversations on channels whose address the contact has proved, and that no other customer had."""
    theirs = Q(pk=None)
    for each in known.exclude(proved_by="").exclude(kind__in=(IdentityKind.CUSTOMER, IdentityKind.IMPORTED)):
        kinds = ("sms",) if each.kind == IdentityKind.PHONE else (each.kind,)
        theirs |= Q(channel__kind__in=kinds, peer=each.value)
    threads = apps.get_model("messengers.ChannelThread")._default_manager.filter(theirs).exclude(proved_by="")
    threads = threads.filter(session__last_customer__in=("", *customers))
    return set(threads.values_list("session_id", flat=True))


def _person(reference: str, contacts: tuple[UUID, ...], customers: tuple[str, ...], candidates: set[UUID]) -> Person:
    """Each conversation is whole where the audit log knows of no other customer in it."""
    raised: dict[UUID, list[tuple[datetime, str]]] = {pk: [] for pk in candidates}
    entries = AuditEntry.objects.filter(
        chain=current_tenant_id(),
        event=AuditEvent.LEVEL_RAISED,
        subject__in=[f"session:{pk}" for pk in candidates],
    ).order_by("seq")
    for subject, moment, data in entries.values_list("subject", "timestamp", "data"):
        raised[UUID(subject.partition(":")[2])].append((moment, json.loads(data)["customer"]))
    last = dict(ChatSession.objects.filter(pk__in=candidates).values_list("pk", "last_customer"))
    whole, shared = [], {}
    for pk, rises in sorted(raised.items()):
        if {customer for _, customer in rises} | {last.get(pk, "")} <= {"", *customers}:
            whole.append(pk)
        else:
            ends: list[datetime | None] = [*(moment for moment, _ in rises[1:]), None]
            spans = [(rise[0], end) for rise, end in zip(rises, ends, strict=True) if rise[1] in customers]
            shared[pk] = tuple(spans)
    return Person(reference, contacts, customers, tuple(whole), shared)


def _files(person: Person) -> QuerySet[VisitorFile]:
    rows: QuerySet[VisitorFile] = VisitorFile.objects.filter(person.in_conversations("session_id", "created_at"))
    return rows.defer("text").order_by("created_at", "pk")


def _write(archive: zipfile.ZipFile, name: str, rows: Iterable[dict[str, object]]) -> tuple[int, str]:
    """A JSON list, row by row: how many, and the SHA-256 of the file."""
    count, digest = 0, hashlib.sha256()
    with archive.open(f"{name}.json", "w", force_zip64=True) as file:

        def put(text: str) -> None:
            data = text.encode()
            digest.update(data)
            file.write(data)

        put("[")
        for row in rows:
            put(("," if count else "") + "\n" + json.dumps(row, ensure_ascii=False, cls=DjangoJSONEncoder))
            count += 1
        put("\n]\n")
    return count, digest.hexdigest()


def _copy_files(
    archive: zipfile.ZipFile, files: Iterable[tuple[UUID, str, str]], digests: dict[str, str]
) -> Iterator[str]:
    """Copy their bytes under `files/`; yields the name of each that is gone from the store, else ""."""
    for pk, name, stored_name in files:
        place = f"files/{pk}-{name.translate(_NO_FOLDERS)}"
        digest = hashlib.sha256()
        try:
            source = file_storage.storage().open(stored_name)
        except FileNotFoundError:
            yield place
            continue
        with source, archive.open(place, "w", force_zip64=True) as file:
            for chunk in source.chunks():
                digest.update(chunk)
                file.write(chunk)
        digests[place] = digest.hexdigest()
        yield ""
