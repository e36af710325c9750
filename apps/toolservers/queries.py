"""Read outside tools that are in use, and the addresses of their servers. Inside the caller's scope.

`refs` are `mcp:<server>@<digest>`, or `mcp:<server>` for what is in use now. A pinned reference says which tools with
which descriptions are meant; whether each is still in use, and on which terms, its row says at this moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import QuerySet

from apps.tenants import policy_seals, vault
from apps.tenants.enums import PolicyKind
from apps.toolservers import integrity, ports, rules
from apps.toolservers.enums import ToolState, Transport
from apps.toolservers.models import OutsideTool, ToolServer, ToolSet
from apps.toolservers.schemas import Address, RemoteTool
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext


def tools_for(refs: Iterable[str]) -> tuple[RemoteTool, ...]:
    """Return every tool of these references that is in use as it was pinned. A server that is gone, switched off or
    without tools gives none: a conversation goes on without it."""
    references = list(refs)
    sealed = policy_seals.load_items(PolicyKind.TOOLS) if references else None
    return tuple(tool for ref in references for tool in _tools_of(ref, sealed))


def pin(ref: str) -> str:
    """Return the reference pinned to its content. Raises `SilasError("skill_missing")` for a server that has nothing in
    use."""
    name, digest = rules.split_reference(ref)
    tool_set = _pinned_set(name, digest) if digest else _current_set(name)
    if tool_set is None:
        raise SilasError(
            ErrorCode.SKILL_MISSING,
            gettext("The tool server {name} has no active tool with this name.").format(name=name),
        )
    return rules.reference(name, tool_set.digest)


def find_tool(alias: str, refs: Iterable[str]) -> RemoteTool | None:
    """Return the tool of this alias among these references, or None."""
    return next((tool for tool in tools_for(refs) if tool.alias == alias), None)


def address_of(server_id: UUID) -> Address:
    """Return where the server is, with its secret unsealed; never to be stored or logged. Raises `NotFound` for a
    server that is gone or is not where it was registered, `SilasError`: seal_broken, skill_missing."""
    row = ToolServer.objects.filter(pk=server_id, removed=False).first()
    # A forged row would have the secret sent wherever it points.
    if row is None or not integrity.is_authentic_server(row, policy_seals.load_items(PolicyKind.TOOLS)):
        raise NotFound()
    sealed = bytes(row.secret)
    secret = vault.unseal(sealed, belongs_to=rules.seal_context(row.pk)).decode() if sealed else ""
    folder = ports.program(row.program).folder if row.transport == Transport.STDIO else None
    return Address(row.transport, row.url, tuple(row.argv), folder, tuple(row.egress), secret)


def servers() -> QuerySet[ToolServer]:
    rows: QuerySet[ToolServer] = ToolServer.objects.filter(removed=False)
    return rows


def server(server_id: UUID) -> ToolServer:
    """Raises `NotFound`."""
    row = servers().filter(pk=server_id).first()
    if row is None:
        raise NotFound()
    return row


def tools(server_id: UUID) -> QuerySet[OutsideTool]:
    rows: QuerySet[OutsideTool] = OutsideTool.objects.filter(server_id=server_id)
    return rows


def accepted_aliases() -> list[str]:
    """The names under which the accepted tools of all servers are used."""
    rows = OutsideTool.objects.filter(state=ToolState.ACCEPTED, server__removed=False)
    return list(rows.values_list("alias", flat=True))


def tool(server_id: UUID, tool_id: UUID) -> OutsideTool:
    """Return the tool of this server. Raises `NotFound`."""
    row = tools(server_id).filter(pk=tool_id).first()
    if row is None:
        raise NotFound()
    return row


def _tools_of(ref: str, sealed: policy_seals.Items | None) -> tuple[RemoteTool, ...]:
    name, digest = rules.split_reference(ref)
    tool_set = _pinned_set(name, digest) if digest else _current_set(name)
    if tool_set is None or not tool_set.server.enabled or tool_set.server.removed:
        return ()
    rows = OutsideTool.objects.filter(server=tool_set.server, state=ToolState.ACCEPTED).order_by("alias")
    pin = rules.reference(name, tool_set.digest)
    pinned_rows = [row for row in rows if tool_set.tools.get(row.alias) == row.digest]
    in_use = [row for row in pinned_rows if integrity.is_authentic_tool(row, tool_set.server, sealed)]
    return tuple(_remote_tool(row, tool_set.server, pin) for row in in_use)


def _pinned_set(name: str, digest: str) -> ToolSet | None:
    # Another set with the same short beginning of a digest is soon found by trying.
    if len(digest) < rules.DIGEST_CHARS:
        return None
    sets = _sets_of(name).filter(digest__startswith=digest)
    return sets.first()


def _current_set(name: str) -> ToolSet | None:
    rows = OutsideTool.objects.filter(server__name=name, server__removed=False, state=ToolState.ACCEPTED)
    now = rules.set_digest(dict(rows.values_list("alias", "digest")))
    return _sets_of(name).filter(digest=now).first()


def _sets_of(name: str) -> QuerySet[ToolSet]:
    sets = ToolSet.objects.select_related("server")
    rows: QuerySet[ToolSet] = sets.filter(server__name=name, server__removed=False)
    return rows


def _remote_tool(row: OutsideTool, server: ToolServer, ref: str) -> RemoteTool:
    return RemoteTool(
        alias=row.alias,
        name=row.name,
        description=row.said["description"],
        schema=rules.closed_schema(row.said["schema"]),
        acting=row.acting,
        risk=row.risk,
        level=row.level,
        price=row.price,
        timeout=row.timeout,
        digest=row.digest,
        server_id=server.pk,
        tool_id=row.pk,
        server=server.name,
        title=row.said["title"] or row.name,
        ref=ref,
        proof=row.proof,
        runs=where_it_runs(server),
    )


def where_it_runs(server: ToolServer) -> str:
    """Return the sentence that says where a call to this server is carried out and with which key, from what
    `address_of` uses."""
    if server.transport == Transport.STDIO:
        reach = f"that may reach {', '.join(server.egress)}" if server.egress else "without network"
        where = f"by {server.name}, the program {server.program.partition('@')[0]}, in a sandbox {reach}"
    else:
        where = f"by {server.name} at {urlsplit(server.url).hostname or server.url}, outside of our sandbox"
    return f"{where}, {'with the key that your company gave it' if server.secret else 'without a key'}"
