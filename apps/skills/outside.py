"""How does an outside server's tool look beside a skill's? The same shape, with nothing of ours to run or to prove it.

References `mcp:<server>@<digest>` stand among a goal's skills. A skill's tool keeps its name before any of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.skills.schemas import Consequence, FactSpec, OutsideToolSpec
from apps.toolservers import queries
from apps.toolservers.rules import is_reference, shown
from apps.toolservers.schemas import RemoteTool

__all__ = ["is_reference", "pinned", "tools_for"]

_MOST_FACTS = 12
pinned = queries.pinned


def tools_for(refs: Iterable[str]) -> tuple[OutsideToolSpec, ...]:
    """Of those among the references that name an outside server; without one, no row is read."""
    elsewhere = [ref for ref in refs if is_reference(ref)]
    return tuple(_spec(tool) for tool in queries.tools_for(elsewhere)) if elsewhere else ()


def _spec(tool: RemoteTool) -> OutsideToolSpec:
    said: dict[str, Any] = {}
    if tool.acting:
        said = {
            "intent": f"Let {tool.server} carry out: {shown(tool.title, 60)}",
            "consequence": Consequence(approve=f"Ask {tool.server} to do it"),
            "rationale": "A customer asked for this. It is done by an outside server.",
            "facts": _facts(tool),
        }
    return OutsideToolSpec(
        name=tool.alias,
        description=tool.description,
        acting=tool.acting,
        reversible=False,
        risk=tool.risk,
        args=dict(tool.schema),
        skill=tool.ref,
        price=tool.price,
        level=tool.level,
        server=tool.server,
        timeout=tool.timeout,
        **said,
    )


def _facts(tool: RemoteTool) -> list[FactSpec]:
    """What a card says: who does it, each value that is sent, and that nobody here can look whether it was done."""
    names = [name for name in tool.schema["properties"] if name.isidentifier() and len(name) <= 60]
    sent = [FactSpec(label=name, text=f"{{{name}}}") for name in names[:_MOST_FACTS]]
    first = FactSpec(label="Done by", text=f"{tool.server}, an outside tool server")
    return [first, *sent, FactSpec(label="Proved by", text=f"nothing but the word of {tool.server}")]
