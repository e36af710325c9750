"""Trust servers, accepted tools and the web search only as people set them up (ADR 100).

Each is an item of the company's sealed list of outside tools: where a server is, on which terms a tool was accepted,
with which provider the web is searched. A server that is switched off has an item too, so that no row can switch it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.toolservers.enums import ToolState
from apps.toolservers.models import OutsideTool, ToolServer, WebSearch

SEARCH = "search"


def server_name(pk: object) -> str:
    return f"server:{pk}"


def tool_name(pk: object) -> str:
    return f"tool:{pk}"


def disabled_name(pk: object) -> str:
    """Return the item's name of a server that is switched off."""
    return f"off:{pk}"


def server_value(row: ToolServer) -> dict[str, object]:
    """Return what is sealed of a server: where it is, and what it may reach."""
    return {
        "name": row.name,
        "transport": str(row.transport),
        "url": row.url,
        "program": row.program,
        "argv": list(row.argv),
        "egress": list(row.egress),
    }


def tool_value(row: OutsideTool) -> dict[str, object]:
    """Return what is sealed of a tool: what a person read, and their terms."""
    return {
        "server": str(row.server_id),
        "name": row.name,
        "alias": row.alias,
        "said": row.said,
        "digest": row.digest,
        "acting": row.acting,
        "risk": str(row.risk),
        "level": row.level,
        "price": _canonical_amount(row.price),
        "timeout": row.timeout,
        "proof": row.proof,
    }


def search_value(
    provider: str, base_url: str, *, domains: Sequence[str], most_results: int, price: Decimal, level: str
) -> dict[str, object]:
    """Return what is sealed of the web search: the provider, its address, and the terms."""
    return {
        "provider": str(provider),
        "base_url": base_url,
        "domains": list(domains),
        "most_results": most_results,
        "price": _canonical_amount(price),
        "level": level,
    }


def is_authentic_server(row: ToolServer, sealed: policy_seals.Items | None) -> bool:
    """True for a server as it was registered here; `sealed`: the list of outside tools."""
    return _is_sealed(server_name(row.pk), server_value(row), sealed)


def is_authentic_tool(row: OutsideTool, server: ToolServer, sealed: policy_seals.Items | None) -> bool:
    """True for a tool that is in use as it was accepted, of a server that is not switched off."""
    if not is_authentic_server(server, sealed) or not _is_sealed(tool_name(row.pk), tool_value(row), sealed):
        return False
    return sealed is not None and disabled_name(server.pk) not in sealed


def is_authentic_search(value: dict[str, object], sealed: policy_seals.Items | None) -> bool:
    return _is_sealed(SEARCH, value, sealed)


def sealed_tools() -> dict[str, dict[str, object]]:
    """Return the items of this tenant as the rows have them, for `manage.py certify`."""
    servers = list(ToolServer.objects.filter(removed=False))
    items = {server_name(row.pk): server_value(row) for row in servers}
    items |= {disabled_name(row.pk): {} for row in servers if not row.enabled}
    accepted = OutsideTool.objects.filter(state=ToolState.ACCEPTED, server__removed=False)
    items |= {tool_name(row.pk): tool_value(row) for row in accepted}
    search = WebSearch.objects.first()
    return items | ({SEARCH: search_row_value(search)} if search is not None else {})


def search_row_value(row: WebSearch) -> dict[str, object]:
    return search_value(
        row.provider,
        row.base_url,
        domains=row.domains,
        most_results=row.most_results,
        price=row.price,
        level=row.level,
    )


def _is_sealed(name: str, value: dict[str, object], sealed: policy_seals.Items | None) -> bool:
    """Compare an item with the sealed list; a difference is logged and audited, once a process."""
    if sealed is None:
        return False
    if sealed.get(name) == policy_seals.digest(value):
        return True
    policy_seals.report_untrusted(PolicyKind.TOOLS, name, "forged" if name in sealed else "not_in_use")
    return False


def _canonical_amount(price: Decimal) -> str:
    """Return the same text for an amount that was typed and for one read from the column."""
    return f"{Decimal(price).normalize():f}"
