"""Write a tenant's memories to a portable bundle, and import one (spec 6.5).

A bundle is JSON lines: a header, one line for each memory, an end line. Each memory's hash covers the hash before it,
so a line that is changed, moved or missing is a problem at its line number. The end line is signed for the tenant that
wrote it. Only a bundle with that signature, or one that an administrator vouches for, keeps its trust and taint; of any
other, memories arrive as external and not confirmed, and memories for the whole company are refused. Entities and
relations are not in a bundle: they are read again from the imported memories.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Any, BinaryIO, Literal
from uuid import UUID, uuid5

from django.conf import settings
from django.db.models import Q, TextChoices
from django.utils.crypto import constant_time_compare, salted_hmac
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory import memories
from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.graph import enqueue_reading
from apps.memory.models import MemoryItem
from apps.memory.reembedding import enqueue_embedding
from apps.memory.schemas import Note, Scope
from kernel.canonical import canonical_bytes, sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.language import gettext_lazy as _
from kernel.taint import Taint, join
from kernel.tenancy import current_tenant_id, tenant_scope
from llm.enums import MemoryType

BUNDLE_VERSION, SCHEMA_VERSION = 1, 1
# A memory holds at most 24,000 characters, six bytes each in canonical JSON; the rest is for its other fields.
MAX_LINE, MAX_RECORDS = 256 * 1024, 200_000
# Of a bundle that comes over HTTP: about 20,000 memories, all of which a request can check and write.
MAX_UPLOAD_BYTES = 10_000_000
# The id of the company is not part of a bundle; this stands for it.
_OWN_SCOPE = f"{ScopeKind.TENANT.value}:self"


class Mode(TextChoices):
    MERGE = "merge", _("Add and update")
    REPLACE = "replace", _("Replace what is there")


class ProblemCode(TextChoices):
    """Why a line cannot be imported."""

    BAD_HEADER = "bad_header", _("This is not a memory bundle.")
    UNKNOWN_VERSION = "unknown_version", _("The bundle has a newer version.")
    BAD_LINE = "bad_line", _("The line is not a memory that may exist.")
    LINE_TOO_LONG = "line_too_long", _("The line is too long.")
    BAD_HASH = "bad_hash", _("The line was changed or moved, or one before it is missing.")
    DUPLICATE = "duplicate", _("The line repeats a memory.")
    TOO_MANY = "too_many", _("The bundle holds too many memories.")
    TRUNCATED = "truncated", _("The line is missing or incomplete.")
    AFTER_END = "after_end", _("The line follows the end of the bundle.")


@dataclass(frozen=True)
class Problem:
    """`line` counts from 1."""

    line: int
    code: ProblemCode


class BundleError(Exception):
    """The bundle cannot be imported; nothing of it was written."""

    def __init__(self, line: int, code: ProblemCode) -> None:
        super().__init__(f"line {line}: {code.value}")
        self.problem = Problem(line, code)

    def as_refusal(self) -> SilasError:
        """The same for people and for the API: `bundle_refused` 422 with `line` and `problem`."""
        text = gettext("Line {line}: {problem} Nothing was imported.")
        message = text.format(line=self.problem.line, problem=self.problem.code.label)
        extra = {"line": self.problem.line, "problem": self.problem.code.value}
        return SilasError(ErrorCode.BUNDLE_REFUSED, message, extra=extra)


@dataclass
class Report:
    """What an import changed, or would change, in numbers of memories.

    `refused`: not imported because the bundle is not trusted. `trusted`: signed by this company, or vouched for.
    `hash`: the bundle's last one.
    """

    trusted: bool
    hash: str
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    deleted: int = 0


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Header(_Line):
    kind: Literal["header"] = "header"
    bundle_version: int
    schema_version: int
    exported_at: AwareDatetime
    include_raw: bool


class Link(_Line):
    to: UUID
    type: str = Field(max_length=40)


class Record(_Line):
    """One memory, without its embedding."""

    kind: Literal["memory"] = "memory"
    id: UUID
    scope: str = Field(max_length=140, pattern=r"^((conversation|customer):.+|tenant:self)$")
    content: str = Field(min_length=1, max_length=memories.MAX_RAW, pattern=r"\S")
    memory_type: MemoryType
    tier: Tier
    trust: Trust
    taint: Taint
    source_kind: SourceKind
    reference: str = Field(min_length=1, max_length=80)
    session_id: UUID | None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    valid_until: AwareDatetime | None
    tags: list[str] = Field(max_length=memories.MAX_WORDS)
    entity_refs: list[str] = Field(max_length=memories.MAX_WORDS)
    links: list[Link] = Field(max_length=memories.MAX_LINKS)
    marked: bool

    def is_storable(self) -> bool:
        """Whether the database accepts it: no zero characters, and nothing external confirmed or for everybody."""
        texts = [self.scope, self.content, self.reference, *self.tags, *self.entity_refs]
        texts += [link.type for link in self.links]
        external = self.taint is Taint.EXTERNAL and (self.trust is not Trust.WORKING or self.scope == _OWN_SCOPE)
        fits = all(len(tag) <= 60 for tag in self.tags) and all(len(name) <= 120 for name in self.entity_refs)
        return fits and not external and not any("\0" in text for text in texts)


class _End(_Line):
    kind: Literal["end"] = "end"
    count: int
    hash: str
    signature: str


def export_bundle(*, include_raw: bool = False, actor: str) -> Iterator[bytes]:
    """The lines of the current tenant's bundle. The raw lane only if `include_raw`. Inside a tenant scope."""
    header = Header(
        bundle_version=BUNDLE_VERSION, schema_version=SCHEMA_VERSION, exported_at=now(), include_raw=include_raw
    ).model_dump(mode="json")
    yield canonical_bytes(header) + b"\n"
    chain, count = sha256_hex(header), 0
    rows = MemoryItem.objects.order_by("created_at", "pk").defer("embedding", "words")
    for row in (rows if include_raw else rows.filter(tier=Tier.ACTIVE)).iterator(chunk_size=500):
        body = _record_of(row).model_dump(mode="json")
        chain = _next_hash(chain, body)
        count += 1
        yield canonical_bytes({**body, "hash": chain}) + b"\n"
    end = _End(count=count, hash=chain, signature=_sign(chain))
    yield canonical_bytes(end.model_dump(mode="json")) + b"\n"
    record(AuditEvent.MEMORY_EXPORTED, actor=actor, data={"count": count, "raw": include_raw, "hash": chain})


def export_file(tenant_id: UUID, *, include_raw: bool, actor: str) -> IO[bytes]:
    """The company's bundle in a temporary file, which goes when it is closed. Outside of any transaction."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it, with the response)
    with tenant_scope(tenant_id):
        file.writelines(export_bundle(include_raw=include_raw, actor=actor))
    file.seek(0)
    return file


def import_bundle(
    tenant_id: UUID,
    bundle: BinaryIO,
    *,
    mode: Mode,
    vouched: bool = False,
    dry_run: bool = False,
    reviewed: str = "",
    actor: str,
) -> Report:
    """Import a bundle in one transaction; its memories are embedded in the background. `merge` never deletes; `replace`
    first deletes all memories of the tiers that the bundle covers. `reviewed`: the hash in the report of the dry run
    that a person has seen.

    Raises `BundleError` for the first line that does not fit, and `bundle_changed` 409 for a bundle with another hash
    than `reviewed`; nothing is written then. Outside of any transaction.
    """
    with tempfile.TemporaryFile() as checked:
        with tenant_scope(tenant_id):
            header, signed, chain = _check(bundle, checked)
        if reviewed and reviewed != chain:
            raise SilasError(ErrorCode.BUNDLE_CHANGED)
        report = Report(trusted=signed or vouched, hash=chain)
        cleaned = _clean(_read(checked), report)
        with tempfile.TemporaryFile() as ready:
            for item in cleaned:
                ready.write(item.model_dump_json().encode() + b"\n")
            with tenant_scope(tenant_id):
                known = set(MemoryItem.objects.values_list("pk", flat=True))
                if mode is Mode.REPLACE:
                    covered = MemoryItem.objects.all()
                    covered = covered if header.include_raw else covered.filter(tier=Tier.ACTIVE)
                    report.deleted = covered.count()
                    if not dry_run:
                        covered.order_by()._raw_delete("default")
                _write(_read(ready), known, report, replaced=header if mode is Mode.REPLACE else None, dry_run=dry_run)
                if not dry_run:
                    if report.created or report.updated:
                        enqueue_embedding()
                    data = {
                        "mode": mode.value,
                        "hash": chain,
                        "signed": signed,
                        "vouched": vouched,
                        "created": report.created,
                        "updated": report.updated,
                        "deleted": report.deleted,
                        "refused": report.refused,
                    }
                    record(AuditEvent.MEMORY_IMPORTED, actor=actor, data=data)
                    enqueue_reading()
    return report


def import_upload(tenant_id: UUID, file: Any, *, mode: Mode, dry_run: bool, reviewed: str, actor: str) -> Report:
    """Import an uploaded file. Raises `bundle_too_large` 413, `bundle_refused` 422 and `bundle_changed` 409."""
    if file.size > MAX_UPLOAD_BYTES:
        text = gettext("The bundle is larger than {value} MB. Import it on the command line.")
        raise SilasError(ErrorCode.BUNDLE_TOO_LARGE, text.format(value=MAX_UPLOAD_BYTES // 1_000_000))
    try:
        return import_bundle(tenant_id, file, mode=mode, dry_run=dry_run, reviewed=reviewed, actor=actor)
    except BundleError as error:
        raise error.as_refusal() from None


def _record_of(row: MemoryItem) -> Record:
    own = row.scope == _stored_scope(_OWN_SCOPE)
    return Record.model_construct(
        kind="memory",
        id=row.pk,
        scope=_OWN_SCOPE if own else row.scope,
        content=row.content,
        memory_type=MemoryType(row.memory_type),
        tier=Tier(row.tier),
        trust=Trust(row.trust),
        taint=Taint(row.taint),
        source_kind=SourceKind(row.source_kind),
        reference=row.reference,
        session_id=row.session_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        valid_until=row.valid_until,
        tags=row.tags,
        entity_refs=row.entity_refs,
        links=[Link(to=UUID(link["to"]), type=link["type"]) for link in row.links],
        marked=row.marked,
    )


def _check(bundle: BinaryIO, checked: IO[bytes]) -> tuple[Header, bool, str]:
    """Copy the bundle's records to `checked` after every line was validated.

    Returns the header, whether the current tenant signed the bundle, and its last hash.
    """
    # One byte more than is allowed shows that a line is too long, without reading all of it.
    number, raw = 1, bundle.readline(MAX_LINE + 1)
    header = _header(raw)
    chain = sha256_hex(header.model_dump(mode="json"))
    ids: set[UUID] = set()
    places: set[tuple[str, str]] = set()
    while True:
        number += 1
        raw = bundle.readline(MAX_LINE + 1)
        if not raw:
            raise BundleError(number, ProblemCode.TRUNCATED)
        body = _parse(raw, number)
        if body.get("kind") == "end":
            break
        claimed = body.pop("hash", None)
        try:
            item = Record.model_validate(body)
        except ValidationError:
            raise BundleError(number, ProblemCode.BAD_LINE) from None
        if not item.is_storable():
            raise BundleError(number, ProblemCode.BAD_LINE)
        chain = _next_hash(chain, body)
        if claimed != chain:
            raise BundleError(number, ProblemCode.BAD_HASH)
        if item.id in ids or (item.scope, item.reference) in places:
            raise BundleError(number, ProblemCode.DUPLICATE)
        if len(ids) >= MAX_RECORDS:
            raise BundleError(number, ProblemCode.TOO_MANY)
        ids.add(item.id)
        places.add((item.scope, item.reference))
        checked.write(item.model_dump_json().encode() + b"\n")
    try:
        end = _End.model_validate(body)
    except ValidationError:
        raise BundleError(number, ProblemCode.BAD_LINE) from None
    if end.count != len(ids) or end.hash != chain:
        raise BundleError(number, ProblemCode.BAD_HASH)
    if bundle.readline(1):
        raise BundleError(number + 1, ProblemCode.AFTER_END)
    return header, constant_time_compare(end.signature, _sign(chain)), chain


def _header(raw: bytes) -> Header:
    body = _parse(raw, 1) if raw else {}
    versions = body.get("bundle_version"), body.get("schema_version")
    if body.get("kind") == "header" and versions != (BUNDLE_VERSION, SCHEMA_VERSION):
        raise BundleError(1, ProblemCode.UNKNOWN_VERSION)
    try:
        return Header.model_validate(body)
    except ValidationError:
        raise BundleError(1, ProblemCode.BAD_HEADER) from None


def _parse(raw: bytes, number: int) -> dict[str, object]:
    if len(raw) > MAX_LINE:
        raise BundleError(number, ProblemCode.LINE_TOO_LONG)
    if not raw.endswith(b"\n"):
        raise BundleError(number, ProblemCode.TRUNCATED)
    try:
        body = json.loads(raw)
        canonical_bytes(body)
    except (ValueError, RecursionError):
        raise BundleError(number, ProblemCode.BAD_LINE) from None
    if not isinstance(body, dict):
        raise BundleError(number, ProblemCode.BAD_LINE)
    return body


def _read(lines: IO[bytes]) -> Iterator[Record]:
    lines.seek(0)
    for line in lines:
        yield Record.model_validate_json(line)


def _clean(items: Iterable[Record], report: Report) -> Iterator[Record]:
    """Scrub each memory, and lower what an untrusted bundle may claim; refused memories are counted and left out."""
    for item in items:
        if not report.trusted and item.scope == _OWN_SCOPE:
            report.refused += 1
            continue
        # A bundle from elsewhere could name a source whose text is not examined for instructions.
        source = item.source_kind if report.trusted else SourceKind.MEMORY_OP
        scope = Scope(ScopeKind.CONVERSATION, "")
        content = memories.clean_content(Note(scope, item.content, source, item.reference, tier=item.tier))
        if not content.strip():
            report.refused += 1
            continue
        lowered: dict[str, object] = {} if report.trusted else {"trust": Trust.WORKING, "taint": Taint.EXTERNAL}
        if not report.trusted and item.memory_type is MemoryType.PROFILE:
            lowered["memory_type"] = MemoryType.FACT
        yield item.model_copy(update={"content": content, **lowered})


def _write(
    items: Iterable[Record], known: set[UUID], report: Report, *, replaced: Header | None, dry_run: bool
) -> None:
    """Insert new memories and update existing ones. `replaced`: the header of a bundle that replaces what there was."""
    stored: dict[UUID, UUID] = {}
    linked: list[tuple[UUID, list[Link]]] = []
    for item in items:
        # Ids are unique over all companies, and the one of a bundle may be another's, whose row is out of sight here.
        own = item.id if item.id in known else uuid5(current_tenant_id(), str(item.id))
        rows = MemoryItem.objects.filter(Q(pk=own) | Q(scope=_stored_scope(item.scope), reference=item.reference))
        if dry_run and replaced is not None:
            rows = rows.exclude(tier=Tier.ACTIVE) if not replaced.include_raw else rows.none()
        row = rows.first()
        stored[item.id] = own if row is None else row.pk
        if row is None:
            report.created += 1
            if not dry_run:
                MemoryItem.objects.bulk_create([_row_of(item, own)])
                linked.append((own, item.links))
        elif _may_update(row, item):
            report.updated += 1
            if not dry_run:
                row.content, row.updated_at = item.content, item.updated_at
                row.taint = join(Taint(row.taint), item.taint).value
                row.marked = row.marked or item.marked
                row.embedding = row.read_at = None
                row.save(update_fields=["content", "updated_at", "taint", "marked", "embedding", "read_at"])
        else:
            report.unchanged += 1
    for pk, links in linked:
        found = [{"to": str(stored[link.to]), "type": link.type} for link in links if link.to in stored]
        if found:
            MemoryItem.objects.filter(pk=pk).update(links=found)


def _may_update(row: MemoryItem, item: Record) -> bool:
    """Whether the bundle's text replaces the stored one: it is newer, and the stored one is neither a raw
    record of what was said nor confirmed by a person."""
    changeable = row.tier == Tier.ACTIVE and row.trust == Trust.WORKING
    external_for_all = item.taint is Taint.EXTERNAL and row.scope == _stored_scope(_OWN_SCOPE)
    newer = item.updated_at > row.updated_at and item.content != row.content
    return changeable and newer and not external_for_all


def _row_of(item: Record, pk: UUID) -> MemoryItem:
    """The row of a new memory. It is kept no longer than a memory that is stored today."""
    days = settings.MEMORY_DAYS if item.tier is Tier.ACTIVE else settings.MEMORY_RAW_DAYS
    moment = now()
    latest = moment + timedelta(days=days)
    return MemoryItem(
        pk=pk,
        tenant_id=current_tenant_id(),
        scope=_stored_scope(item.scope),
        content=item.content,
        memory_type=item.memory_type.value,
        tier=item.tier.value,
        trust=item.trust.value,
        taint=item.taint.value,
        source_kind=item.source_kind.value,
        reference=item.reference,
        session_id=item.session_id,
        # A moment to come would outlive every retention.
        created_at=min(item.created_at, moment),
        updated_at=min(item.updated_at, moment),
        valid_until=min(item.valid_until or latest, latest),
        tags=item.tags,
        entity_refs=item.entity_refs,
        marked=item.marked,
    )


def _stored_scope(scope: str) -> str:
    return f"{ScopeKind.TENANT.value}:{current_tenant_id()}" if scope == _OWN_SCOPE else scope


def _next_hash(before: str, body: dict[str, object]) -> str:
    return sha256_hex(before.encode() + canonical_bytes(body))


def _sign(chain: str) -> str:
    """The signature of this installation for the current tenant; it proves nothing for any other tenant."""
    return salted_hmac("silas.memory.bundle", f"{current_tenant_id()}:{chain}", algorithm="sha256").hexdigest()
