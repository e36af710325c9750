"""Register outside tool servers, accept and suspend their tools. Inside the caller's scope.

A tool is in use only after a person accepted exactly the description that is stored (`digest`), on their own terms; any
later change by its server suspends it. What a person decides is sealed (`integrity`). Nothing here asks a server:
`server_refresh` does, between two of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import SystemRandom
from uuid import UUID, uuid4

from django.db.models.functions import Now
from pydantic import ValidationError

from apps.approvals.enums import Risk
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind, SetAside
from apps.bus.signals import set_aside
from apps.gates.schemas import Expectation
from apps.tenants import policy_seals, vault
from apps.tenants.enums import PolicyKind
from apps.toolservers import integrity, ports, rules
from apps.toolservers.enums import ToolState, Transport
from apps.toolservers.models import OutsideTool, ToolServer, ToolSet
from apps.toolservers.schemas import Descriptor, Terms
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.allowed import address_problem
from kernel.language import gettext

MOST_SERVERS = 50
LONGEST_SECRET = 4000
MOST_ARGS, LONGEST_ARG = 20, 300
MOST_PRICE = Decimal(1000)
SECONDS = range(1, 121)
CHECK_INTERVAL = timedelta(hours=1)
_dice = SystemRandom()


def add_server(name: str, *, url: str, secret: str = "", actor: str) -> ToolServer:
    """Register an HTTP server; none of its tools is in use yet. Raises `SilasError` 422: tool_server_name,
    address_refused, tool_server_secret, tool_server_exists, too_many_servers."""
    _require_name(name)
    if problem := address_problem(url):
        raise SilasError(ErrorCode.ADDRESS_REFUSED, problem)
    return _create(ToolServer(name=name, transport=Transport.HTTP, url=url), secret, actor)


def add_program(
    name: str,
    *,
    skill: str,
    script: str,
    args: Sequence[str] = (),
    places: Sequence[str] = (),
    secret: str = "",
    actor: str,
) -> ToolServer:
    """Register a script of an approved skill as a server in the sandbox, pinned to the skill's content.

    It reaches those of `places` that were approved with the skill, and no others. Raises as `add_server`, and
    `SilasError` skill_missing 409, program_script, program_args, program_place 422.
    """
    _require_name(name)
    program = ports.program(skill)
    if script not in program.scripts:
        raise SilasError(ErrorCode.PROGRAM_SCRIPT)
    if len(args) > MOST_ARGS or any(len(arg) > LONGEST_ARG or not arg.isprintable() for arg in args):
        raise SilasError(ErrorCode.PROGRAM_ARGS)
    if beyond := [place for place in places if place not in program.egress]:
        raise SilasError(
            ErrorCode.PROGRAM_PLACE,
            gettext("The skill was not approved for {beyond}.").format(beyond=beyond[0][:100]),
        )
    argv, egress = [script, *args], list(dict.fromkeys(places))
    row = ToolServer(name=name, transport=Transport.STDIO, program=program.ref, argv=argv, egress=egress)
    return _create(row, secret, actor)


def change_secret(server_id: UUID, secret: str, *, actor: str) -> None:
    """Replace or remove the bearer token. Raises `NotFound`, `SilasError("tool_server_secret")`."""
    row = _lock_server(server_id)
    row.secret = _seal(row, secret)
    row.save(update_fields=["secret"])
    _record_change(row, actor)


def set_enabled(server_id: UUID, enabled: bool, *, actor: str) -> None:
    """Switch the server on or off: when it is off, its tools are in no run from this commit on. Raises `NotFound`."""
    row = _lock_server(server_id)
    if row.enabled != enabled:
        row.enabled = enabled
        row.save(update_fields=["enabled"])
        if enabled:
            policy_seals.remove_item(PolicyKind.TOOLS, integrity.disabled_name(row.pk))
            _schedule_check(row.pk)
        else:
            policy_seals.seal_item(PolicyKind.TOOLS, integrity.disabled_name(row.pk), {})
        _record_change(row, actor)


def store_listing(server_id: UUID, listed: Iterable[Descriptor], *, actor: str = "system") -> ToolServer:
    """Store what the server lists now: new tools wait for a person, changed and missing ones are suspended, none is
    accepted. Raises `NotFound`."""
    server = _lock_server(server_id)
    known = {tool.name: tool for tool in OutsideTool.objects.select_for_update(no_key=True).filter(server=server)}
    by_name = {descriptor.name: descriptor for descriptor in listed}
    added = [_create_tool(server, descriptor) for name, descriptor in by_name.items() if name not in known]
    suspended = sum(_update_descriptor(tool, by_name.get(name), actor) for name, tool in known.items())
    ToolServer.objects.filter(pk=server.pk).update(listed_at=Now(), failure="", failed_at=None)
    _store_tool_set(server)
    data = {"listed": len(by_name), "new": len(added), "suspended": suspended}
    record(AuditEvent.TOOL_SERVER_LISTED, actor=actor, subject=f"tool_server:{server.pk}", data=data)
    return server


def is_monitored(server_id: UUID) -> bool:
    """True for a server that is on and has a tool in use."""
    watched = ToolServer.objects.filter(pk=server_id, enabled=True, removed=False, tools__state=ToolState.ACCEPTED)
    return bool(watched.exists())


def next_check_at(server_id: UUID) -> datetime | None:
    """Return when the server is asked next: in an hour plus a random part, so that not all are asked at one moment;
    None for one that is no longer monitored."""
    ToolServer.objects.select_for_update(no_key=True).filter(pk=server_id).first()
    return now() + CHECK_INTERVAL + _dice.random() * CHECK_INTERVAL / 4 if is_monitored(server_id) else None


def compare_listing(server_id: UUID, listed: Iterable[Descriptor]) -> int:
    """Suspend the tools in use that the server describes differently or no longer lists; returns how many. New tools
    are not stored: they wait until a person asks. Raises `NotFound`."""
    server = _lock_server(server_id)
    by_name = {descriptor.name: descriptor for descriptor in listed}
    rows = OutsideTool.objects.select_for_update(no_key=True).filter(server=server, state=ToolState.ACCEPTED)
    stopped = sum(_update_descriptor(tool, by_name.get(tool.name), "system") for tool in rows)
    ToolServer.objects.filter(pk=server.pk).exclude(failure="").update(failure="", failed_at=None)
    if stopped:
        _store_tool_set(server)
    return stopped


def record_failure(server_id: UUID, code: str, *, actor: str = "system") -> None:
    """Record that the server could not be asked; owners are told once. Its tools stay as they are: a call of one fails
    by itself."""
    if ToolServer.objects.filter(pk=server_id, failure="").exists():
        set_aside(SetAside.TOOL_SERVER, "system")
    if ToolServer.objects.filter(pk=server_id).update(failure=code[:60], failed_at=Now()):
        record(AuditEvent.TOOL_SERVER_FAILED, actor=actor, subject=f"tool_server:{server_id}", data={"code": code[:60]})


def record_descriptor(tool_id: UUID, descriptor: Descriptor | None) -> None:
    """Suspend a tool that a call found described differently, or gone (`said` None)."""
    tool = _lock_tool(tool_id)
    if _update_descriptor(tool, descriptor, "system"):
        _store_tool_set(tool.server)


def accept_tool(tool_id: UUID, terms: Terms, *, digest: str, by: UUID | None, actor: str) -> OutsideTool:
    """Take the tool into use as it is described under `digest`, which is what the person read.

    Raises `SilasError` 409 `tool_changed` when its server says something else by now, 422 `tool_terms` for terms that
    make no sense, `tool_proof` for a proof that proves nothing, `tool_unusable` for a tool that cannot be used as it is
    described; `NotFound`.
    """
    tool = _lock_tool(tool_id)
    _require_terms(terms)
    proof = _checked_proof(tool, terms)
    if not tool.seen_digest or tool.seen_digest != digest:
        raise SilasError(ErrorCode.TOOL_CHANGED)
    if tool.problem:
        raise SilasError(
            ErrorCode.TOOL_UNUSABLE, gettext("This tool cannot be used: {problem}.").format(problem=tool.problem)
        )
    tool.said, tool.digest, tool.state = tool.seen, tool.seen_digest, ToolState.ACCEPTED
    tool.acting, tool.risk, tool.level = terms.acting, Risk(terms.risk), terms.level
    tool.price, tool.timeout, tool.proof = terms.price, terms.timeout, proof
    tool.accepted_by, tool.accepted_at = by, Now()
    tool.save()
    policy_seals.seal_item(PolicyKind.TOOLS, integrity.tool_name(tool.pk), integrity.tool_value(tool))
    _store_tool_set(tool.server)
    _schedule_check(tool.server_id)
    data = {"server": str(tool.server_id), "digest": digest, "acting": tool.acting, "risk": str(tool.risk)}
    data |= {"proved": bool(proof)}
    record(AuditEvent.OUTSIDE_TOOL_ACCEPTED, actor=actor, subject=f"outside_tool:{tool.pk}", data=data)
    return tool


def suspend_tool(tool_id: UUID, *, actor: str) -> None:
    """Take the tool out of use until a person accepts it again. Raises `NotFound`."""
    tool = _lock_tool(tool_id)
    if tool.state == ToolState.ACCEPTED:
        _suspend(tool, "by_person", actor)
        policy_seals.remove_item(PolicyKind.TOOLS, integrity.tool_name(tool.pk))
        _store_tool_set(tool.server)


def remove_server(server_id: UUID, *, actor: str) -> None:
    """Remove the server and its secret; its tools are in no run any more. Rows that runs and approvals refer to stay,
    suspended. Raises `NotFound`."""
    row = _lock_server(server_id)
    for tool in OutsideTool.objects.select_for_update(no_key=True).filter(server=row, state=ToolState.ACCEPTED):
        _suspend(tool, "server_removed", actor)
    row.enabled, row.secret, row.removed = False, b"", True
    row.save(update_fields=["enabled", "secret", "removed"])
    policy_seals.remove_item(PolicyKind.TOOLS, integrity.server_name(row.pk))
    record(AuditEvent.TOOL_SERVER_REMOVED, actor=actor, subject=f"tool_server:{row.pk}")


def reseal() -> int:
    """Seal the tokens of all servers under the company's newest data key; returns how many were changed."""
    count = 0
    for row in ToolServer.objects.exclude(secret=b"").select_for_update(no_key=True):
        sealed = vault.reseal(bytes(row.secret), belongs_to=rules.seal_context(row.pk))
        if sealed is not None:
            row.secret = sealed
            row.save(update_fields=["secret"])
            count += 1
    return count


def _create(row: ToolServer, secret: str, actor: str) -> ToolServer:
    if ToolServer.objects.filter(name=row.name, removed=False).exists():
        raise SilasError(ErrorCode.TOOL_SERVER_EXISTS)
    if ToolServer.objects.filter(removed=False).count() >= MOST_SERVERS:
        raise SilasError(
            ErrorCode.TOO_MANY_SERVERS,
            gettext("{most_servers} is the maximum number of tool servers.").format(most_servers=MOST_SERVERS),
        )
    row.pk = uuid4()
    row.secret = _seal(row, secret)
    row.save(force_insert=True)
    policy_seals.seal_item(PolicyKind.TOOLS, integrity.server_name(row.pk), integrity.server_value(row))
    data = {"transport": str(row.transport)}
    record(AuditEvent.TOOL_SERVER_ADDED, actor=actor, subject=f"tool_server:{row.pk}", data=data)
    return row


def _require_name(name: str) -> None:
    if problem := rules.name_problem(name):
        raise SilasError(ErrorCode.TOOL_SERVER_NAME, problem)


def _seal(row: ToolServer, secret: str) -> bytes:
    if not secret:
        return b""
    if len(secret) > LONGEST_SECRET or not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise SilasError(ErrorCode.TOOL_SERVER_SECRET)
    return vault.seal(secret.encode(), belongs_to=rules.seal_context(row.pk))


def _require_terms(terms: Terms) -> None:
    sensible = terms.risk in Risk.values and terms.timeout in SECONDS and len(terms.level) <= 60
    if not sensible or not terms.price.is_finite() or not 0 <= terms.price <= MOST_PRICE:
        raise SilasError(
            ErrorCode.TOOL_TERMS,
            gettext("Enter the risk, a price from 0 to 1000 dollars and a timeout from 1 to 120 seconds."),
        )


def _checked_proof(tool: OutsideTool, terms: Terms) -> dict[str, object]:
    """Return how the tool's actions are proved: by a tool of the same server that only reads and is in use (ADR 75)."""
    if not terms.proof:
        return {}
    named = OutsideTool.objects.filter(server=tool.server_id, alias=str(terms.proof.get("tool")), acting=False)
    reading = named.filter(state=ToolState.ACCEPTED).first()
    if not terms.acting or reading is None:
        problem = "Verify actions with a read-only tool of the same server that is in use."
    elif tool.problem:
        problem = "A tool that can't be used can't be verified."
    else:
        acts, reads = rules.closed_schema(tool.seen["schema"]), rules.closed_schema(reading.said["schema"])
        problem = rules.proof_problem(terms.proof, acting=acts, reading=reads) or _expectation_problem(terms.proof)
    if problem:
        raise SilasError(ErrorCode.TOOL_PROOF, problem)
    return dict(terms.proof)


def _expectation_problem(proof: Mapping[str, object]) -> str:
    try:
        Expectation.model_validate(proof["expect"])
    except ValidationError:
        return gettext("The expected answer is invalid.")
    return ""


def _create_tool(server: ToolServer, descriptor: Descriptor) -> OutsideTool:
    taken = OutsideTool.objects.values_list("alias", flat=True)
    values = _stored_descriptor(descriptor)
    row: OutsideTool = OutsideTool.objects.create(
        server=server,
        alias=rules.alias_of(server.name, descriptor.name, taken),
        name=descriptor.name,
        said=values,
        seen=values,
        seen_digest=descriptor.digest,
        problem=descriptor.problem[:120],
    )
    return row


def _update_descriptor(tool: OutsideTool, descriptor: Descriptor | None, actor: str) -> bool:
    """Store what the server says of the tool now; True when that took it out of use."""
    digest = descriptor.digest if descriptor else ""
    if digest == tool.seen_digest and (descriptor is None or descriptor.problem[:120] == tool.problem):
        return False
    tool.seen, tool.seen_digest = (_stored_descriptor(descriptor), digest) if descriptor else ({}, "")
    tool.problem = descriptor.problem[:120] if descriptor else ""
    if tool.state == ToolState.ACCEPTED:
        _suspend(tool, "changed" if descriptor else "gone", actor)
        return True
    if tool.state == ToolState.NEW:
        tool.said = tool.seen
    tool.save(update_fields=["said", *_DESCRIPTOR_FIELDS])
    return False


# The columns that a worker may write (silas_platform.worker_rights): what it saw, and the suspension.
_DESCRIPTOR_FIELDS = ("state", "seen", "seen_digest", "problem")


def _suspend(tool: OutsideTool, reason: str, actor: str) -> None:
    tool.state = ToolState.SUSPENDED
    tool.save(update_fields=_DESCRIPTOR_FIELDS)
    data = {"server": str(tool.server_id), "reason": reason}
    record(AuditEvent.OUTSIDE_TOOL_SUSPENDED, actor=actor, subject=f"outside_tool:{tool.pk}", data=data)


def _stored_descriptor(descriptor: Descriptor) -> dict[str, object]:
    """Return what is stored of a description: all that a person has to see. Of an unusable one, only that it exists."""
    if descriptor.problem:
        return {"title": "", "description": "", "schema": {}, "annotations": {}}
    annotations = {str(key): value for key, value in descriptor.annotations.items() if isinstance(value, bool | str)}
    return {
        "title": rules.one_line(descriptor.title, 200),
        "description": descriptor.description,
        "schema": dict(descriptor.schema),
        "annotations": rules.clean_value(annotations),
    }


def _store_tool_set(server: ToolServer) -> None:
    """Store the set of tools in use now, if it is a new one."""
    tools = _accepted_digests(server)
    if tools:
        ToolSet.objects.get_or_create(server=server, digest=rules.set_digest(tools), defaults={"tools": tools})


def _accepted_digests(server: ToolServer) -> Mapping[str, str]:
    rows = OutsideTool.objects.filter(server=server, state=ToolState.ACCEPTED).order_by("alias")
    return dict(rows.values_list("alias", "digest"))


def _lock_server(server_id: UUID) -> ToolServer:
    row: ToolServer | None = (
        ToolServer.objects.select_for_update(no_key=True).filter(pk=server_id, removed=False).first()
    )
    if row is None:
        raise NotFound()
    return row


def _schedule_check(server_id: UUID) -> None:
    """Have a worker check soon whether the locked server still says what was accepted."""
    bus.schedule(Kind.TOOL_SERVER_CHECK, scope_id=server_id, due_at=now())


def _lock_tool(tool_id: UUID) -> OutsideTool:
    """Lock the tool, and its server first: the order that every writer keeps."""
    row: OutsideTool | None = OutsideTool.objects.filter(pk=tool_id).first()
    if row is None:
        raise NotFound()
    _lock_server(row.server_id)
    locked: OutsideTool = OutsideTool.objects.select_for_update(of=("self",), no_key=True).get(pk=tool_id)
    return locked


def _record_change(row: ToolServer, actor: str) -> None:
    data = {"enabled": row.enabled, "with_secret": bool(row.secret)}
    record(AuditEvent.TOOL_SERVER_CHANGED, actor=actor, subject=f"tool_server:{row.pk}", data=data)
