"""Read skills in use, their tools, and the records that a tool may see. Inside the caller's scope.

`refs` are a goal's or work item's `skills`: `name@digest`, or a bare name for the current version. Only versions in use
are found. Records are exported for one customer: theirs, and those of no customer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import F, QuerySet, Subquery
from django.db.models.functions import JSONObject

from apps.gates.schemas import GateSpec
from apps.skills import argv, outside_tools, rules, store
from apps.skills.enums import SkillStatus
from apps.skills.integrity import is_authentic
from apps.skills.models import Record, SkillFile, SkillVersion
from apps.skills.schemas import DIGEST_CHARS, ArgSpec, SkillManifest, ToolDeclaration, ToolSpec
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import PolicySeal
from apps.tenants.queries import is_simulated
from apps.toolservers.ports import Program
from kernel.canonical import canonical_bytes
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id
from sandbox.spec import Mount

Rows = dict[str, list[dict[str, Any]]]


def versions(refs: Iterable[str]) -> tuple[SkillVersion, ...]:
    """Return the installed versions, in the order of the references; a reference to an outside server names no version.
    Raises `SilasError("skill_missing")`."""
    return tuple(_required(ref, version) for ref, version in _look_up(refs))


def versions_in_use(refs: Iterable[str]) -> tuple[SkillVersion, ...]:
    """Return the installed versions without those that are not in use."""
    return tuple(version for _, version in _look_up(refs) if version is not None)


def _look_up(refs: Iterable[str]) -> list[tuple[str, SkillVersion | None]]:
    """Look up all references in one statement."""
    skill_refs = [ref for ref in refs if not outside_tools.is_reference(ref)]
    names = {rules.split_reference(ref)[0] for ref in skill_refs}
    rows = _authentic(active_versions().filter(name__in=names)) if names else []
    return [(ref, next((row for row in rows if _is_meant(row, ref)), None)) for ref in skill_refs]


def _is_meant(version: SkillVersion, ref: str) -> bool:
    name, digest = rules.split_reference(ref)
    is_whole = not digest or len(digest) >= DIGEST_CHARS
    return version.name == name and is_whole and version.digest.startswith(digest)


def _required(ref: str, version: SkillVersion | None) -> SkillVersion:
    if version is None:
        name = rules.split_reference(ref)[0]
        raise SilasError(
            ErrorCode.SKILL_MISSING, gettext("The skill {name} is not installed in this version.").format(name=name)
        )
    return version


def tools_for(refs: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Return every tool of these skills, then of these outside servers; the first of a name takes precedence. Raises
    `SilasError("skill_missing")`."""
    refs = tuple(refs)
    return tools_from(versions(refs), refs)


def tools_in_use(refs: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Return the tools without the skills that were switched off: conversations go on with what is left."""
    refs = tuple(refs)
    return tools_from(versions_in_use(refs), refs)


def tools_from(installed: Iterable[SkillVersion], refs: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Return the tools of these versions, then of the outside servers among the references."""
    tools = dict[str, ToolSpec]()
    for version in installed:
        for tool in tools_of(version):
            tools.setdefault(tool.name, tool)
    for elsewhere in outside_tools.tools_for(refs):
        tools.setdefault(elsewhere.name, elsewhere)
    return tuple(tools.values())


def pin(refs: Iterable[str]) -> tuple[str, ...]:
    """Return the references pinned to their content, so that what is approved cannot be swapped. Raises
    `SilasError("skill_missing")`."""
    return tuple(outside_tools.pin(ref) if outside_tools.is_reference(ref) else _pin(ref) for ref in refs)


def _pin(ref: str) -> str:
    (version,) = versions([ref])
    return pinned_ref(version)


def folder_of(version: SkillVersion) -> Path:
    """Return the version's files on this machine, read-only."""
    files = SkillFile.objects.filter(version_id=version.pk).values_list("path", "content")
    return store.unpack(version.digest, lambda: {path: bytes(content) for path, content in files})


def records_for(customer: str, books: Iterable[str]) -> Rows:
    """Return by book what a script may see: `{key, subject, revision, data}`. Without a customer, only records of no
    customer."""
    return _records(books, subject__in={"", customer})


def _records(books: Iterable[str], **whose: object) -> Rows:
    wanted = list(dict.fromkeys(books))
    rows: Rows = {book: [] for book in wanted}
    if not wanted:
        return rows
    for row in Record.objects.filter(book__in=wanted, **whose).order_by("book", "key"):
        rows[row.book].append(_export(row))
    return rows


def record_keys(customer: str, books: Iterable[str]) -> set[str]:
    """Return the keys of the customer's own records in these books."""
    mine = Record.objects.filter(book__in=list(books), subject=customer).exclude(subject="")
    return set(mine.values_list("key", flat=True))


def as_files(rows: Mapping[str, Sequence[Mapping[str, object]]]) -> dict[str, bytes]:
    return {f"{book}.json": canonical_bytes(list(records)) for book, records in rows.items()}


@dataclass(frozen=True)
class Runnable:
    """All that one run of a tool needs, read at once.

    `script_args`: what its script declares, if it does. `is_plain`: the tool was derived from a script of the plain
    Agent Skills form. `egress`: the places its skill may reach.
    """

    tool: ToolSpec
    folder: Path
    rows: Rows
    script_args: Mapping[str, ArgSpec] | None = None
    is_plain: bool = False
    egress: tuple[str, ...] = ()


def load_runnable(name: str, refs: Iterable[str], customer: str, *, house: bool = False) -> Runnable | None:
    """Return the tool of this name among those of these skills that are in use, with its files and its records; None
    when there is none. `house`: the records of all customers."""
    for version in versions_in_use(refs):
        for tool in tools_of(version):
            if tool.name == name:
                return _runnable(version, tool, customer, house=house)
    return None


def _runnable(version: SkillVersion, tool: ToolSpec, customer: str, *, house: bool) -> Runnable:
    manifest, books = manifest_of(version), [*tool.records, *tool.writes]
    return Runnable(
        tool,
        folder_of(version),
        _records(books) if house else records_for(customer, books),
        script_args=manifest.script_args.get(tool.script),
        is_plain=not manifest.tools,
        egress=_egress(version, tool),
    )


def _egress(version: SkillVersion, tool: ToolSpec) -> tuple[str, ...]:
    """Return the places that a run of this tool may reach, without a connection; none in a copy for simulations."""
    places = rules.egress_of(_places(manifest_of(version), tool))
    return () if places and is_simulated() else places


def places_of(tool: ToolSpec) -> tuple[str, ...]:
    """Return what a run of this tool will be able to reach, as `load_runnable` decides; of a tool with a connection its
    account decides (`connections.permissions.reach_of`)."""
    (version,) = versions([tool.skill])
    return _egress(version, tool)


def reaches_hosts(version: SkillVersion) -> bool:
    """Whether some script of the version may reach hosts without a connection."""
    return bool(rules.egress_of(manifest_of(version).requirements.network))


def _places(manifest: SkillManifest, tool: ToolDeclaration) -> list[str]:
    """Return the hosts that the tool's script may reach: its own, or where it names none those of its skill."""
    return manifest.requirements.network if tool.network is None else tool.network


def card_facts(tool: ToolSpec, args: Mapping[str, object], customer: str) -> list[dict[str, str]]:
    """Return what a card about this call shows: values before, from the customer's records, and after, from the
    arguments."""
    books = [fact.book for fact in tool.facts if fact.book]
    return rules.card_facts(tool, args, records_for(customer, books))


def values_before(
    tool: ToolSpec, args: Mapping[str, object], customer: str, *, books: Collection[str]
) -> dict[str, str]:
    """Return, by argument, the value that the customer's own records in these books hold now, where a fact of the card
    says that the argument replaces it."""
    facts = [fact for fact in tool.facts if fact.book in books and fact.after]
    rows = _records([str(fact.book) for fact in facts], subject=customer) if customer else {}
    return rules.values_before(facts, args, rows)


def card_reads(tool: ToolSpec, args: Mapping[str, object], customer: str) -> list[dict[str, object]]:
    """Return the records that a card about this call shows, with the revision at which it shows them; 0 for none."""
    shown = {(fact.book, rules.fill(fact.key or "", args)) for fact in tool.facts if fact.book}
    rows = records_for(customer, [book for book, _ in shown])
    revisions = {(book, row["key"]): row["revision"] for book, records in rows.items() for row in records}
    return [{"book": book, "key": key, "revision": revisions.get((book, key), 0)} for book, key in sorted(shown)]


def have_changed(reads: Iterable[Mapping[str, Any]], customer: str) -> bool:
    """True when one of these records is at another revision than was shown; another customer's record counts as
    none."""
    expected = {(str(read["book"]), str(read["key"])): int(read["revision"]) for read in reads}
    if not expected:
        return False
    same = Record.objects.filter(
        book__in={book for book, _ in expected}, key__in={key for _, key in expected}, subject__in={"", customer}
    )
    revisions = {(row.book, row.key): row.revision for row in same}
    return any(revisions.get(name, 0) != revision for name, revision in expected.items())


def verification_mounts(
    tools: Sequence[ToolSpec], customer: str, calls: Sequence[Mapping[str, object]]
) -> dict[str, Mount]:
    """Return the mounts for the checks of tools of one skill after a run: the skill, the customer's records as they are
    now, and the calls (`[{"tool", "args"}]`) at `/sandbox/call/calls.json`."""
    books = [book for tool in tools for book in (*tool.records, *tool.writes)]
    mounts: dict[str, Mount] = {
        "records": as_files(records_for(customer, books)),
        "call": {"calls.json": canonical_bytes([dict(call) for call in calls])},
    }
    for version in versions(dict.fromkeys(tool.skill for tool in tools)):
        mounts.setdefault("skill", folder_of(version))
    return mounts


def tenant_mounts(refs: Iterable[str]) -> dict[str, Mount]:
    """Return the mounts for the checks of a goal that covers the whole tenant: its first skill, and every record of the
    books that its skills declare. For sandboxes that act on nothing and whose output only the harness reads."""
    here = versions(refs)
    books = [book for version in here for tool in tools_of(version) for book in (*tool.records, *tool.writes)]
    mounts: dict[str, Mount] = {"records": as_files(_records(books))}
    return {**mounts, "skill": folder_of(here[0])} if here else mounts


def gate_mounts(gate: GateSpec, refs: Iterable[str], *, claimed: Mapping[str, str] | None = None) -> dict[str, Mount]:
    """Return what a script gate may see: its skill's folder (`config.skill`, else the only or first one) and the books
    it declares (`config.records`).

    A skill that was switched off brings no folder, and its gate does not pass. With `claimed` and `config.match`
    (`{field: claim value}`) only records that fit.
    """
    name = gate.config.get("skill")
    matching = [version for ref, version in _look_up(refs) if name in (None, rules.split_reference(ref)[0])]
    mounts: dict[str, Mount] = {"skill": folder_of(matching[0])} if matching and matching[0] else {}
    rows = Record.objects.filter(book__in=list(gate.config.get("records") or ()))
    for field, value in (gate.config.get("match") or {}).items():
        if claimed and value in claimed:
            rows = rows.filter(**{f"data__{field}": claimed[value]})
    books: Rows = {book: [] for book in gate.config.get("records") or ()}
    for row in rows.order_by("key"):
        books[row.book].append(_export(row))
    return {**mounts, "records": as_files(books)}


def program_of(ref: str) -> Program:
    """Return the version in use as a program. Raises `SilasError("skill_missing")`."""
    (version,) = versions([ref])
    paths = version.files.filter(path__startswith="scripts/", path__endswith=".py").values_list("path", flat=True)
    places = rules.egress_of(manifest_of(version).requirements.network)
    return Program(pinned_ref(version), folder_of(version), frozenset(paths), places)


def active_versions() -> QuerySet[SkillVersion]:
    """Return every active version, of each skill the current one first."""
    rows: QuerySet[SkillVersion] = SkillVersion.objects.filter(status=SkillStatus.ACTIVE)
    return rows.order_by("name", F("activated_at").desc(nulls_last=True), "-number")


def current_version(name: str) -> SkillVersion | None:
    """Return the version that a bare name refers to, or None."""
    return next(iter(_authentic(active_versions().filter(name=name))), None)


def _authentic(rows: QuerySet[SkillVersion]) -> list[SkillVersion]:
    """Return those versions that may be loaded. The sealed list comes with the rows, in one statement."""
    list_of_skills = PolicySeal.objects.filter(kind=PolicyKind.SKILLS)
    seal = list_of_skills.values(seal=JSONObject(version="version", signature="signature", items="items"))
    versions = list(rows.annotate(seal=Subquery(seal)))
    if not versions:
        return []
    seal_row = versions[0].seal
    seals = [(seal_row["version"], seal_row["signature"], seal_row["items"])] if seal_row else []
    sealed = policy_seals.verified_items(current_tenant_id(), PolicyKind.SKILLS, seals)
    return [row for row in versions if is_authentic(row, sealed)]


def newest_versions() -> list[SkillVersion]:
    """Return the newest version of every skill, of any status, by name."""
    return list(SkillVersion.objects.order_by("name", "-number").distinct("name"))


def all_versions(name: str) -> list[SkillVersion]:
    """Return every version of this skill that ever was, the newest first; empty for an unknown skill."""
    return list(SkillVersion.objects.filter(name=name).order_by("-number"))


def pinned_ref(version: SkillVersion) -> str:
    return rules.reference(version.name, version.digest)


# Caches by digest. The manifest is part of the content that the digest names, so an entry is never out of date.
_manifests: dict[str, SkillManifest] = {}
_parsed: dict[str, tuple[ToolSpec, ...]] = {}


def manifest_of(version: SkillVersion) -> SkillManifest:
    if version.digest not in _manifests:
        _manifests[version.digest] = SkillManifest.model_validate(version.manifest)
    return _manifests[version.digest]


def tools_of(version: SkillVersion) -> tuple[ToolSpec, ...]:
    """Return the version's tools; a skill that is only there for its instructions has none (spec 10.1 `activation`)."""
    if version.digest not in _parsed:
        manifest = manifest_of(version)
        ref = pinned_ref(version)
        tools = [] if manifest.activation == "background" else [*manifest.tools, *argv.derived_tools(manifest)]
        _parsed[version.digest] = tuple(
            ToolSpec(**tool.model_dump(), skill=ref, reaches=bool(_places(manifest, tool))) for tool in tools
        )
    return _parsed[version.digest]


def _export(row: Record) -> dict[str, object]:
    return {"key": row.key, "subject": row.subject, "revision": row.revision, "data": row.data}


def contents_of(version: SkillVersion) -> dict[str, bytes]:
    """Every file of the version by its path."""
    rows = SkillFile.objects.filter(version=version).values_list("path", "content")
    return {path: bytes(content) for path, content in rows}
