"""Shapes of outside tools: what a server says of one, what a person accepted of it, where a server is. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Descriptor:
    """One tool as its server describes it: hostile text until a person has read it. `digest` is of all of it, `problem`
    why it cannot be accepted as it stands."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    digest: str
    problem: str = ""


@dataclass(frozen=True)
class Address:
    """Where a server is and with what it is asked; of one in the sandbox, `folder` holds its files, `argv` names a
    script of it and what it is given. `secret` stands in no repr, row or log."""

    transport: str
    url: str = ""
    argv: tuple[str, ...] = ()
    folder: Path | None = None
    egress: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class RemoteTool:
    """An accepted tool, ready to be offered. `runs`: where a call of it is carried out, and as whom. `schema` is closed
    and holds no reference; `ref` is the pinned set."""

    alias: str
    name: str
    description: str
    schema: Mapping[str, Any]
    acting: bool
    risk: str
    level: str
    price: Decimal
    timeout: int
    digest: str
    server_id: UUID
    tool_id: UUID
    server: str
    title: str
    ref: str
    proof: Mapping[str, Any] = field(default_factory=dict)
    runs: str = ""


@dataclass(frozen=True)
class Terms:
    """On which terms a person takes a tool: what it may do, who may ask for it, what one call costs, how long it may
    take. `proof`, of an acting tool: `{tool, args, expect}`, which reading tool of the same server says whether it was
    done, asked with what, and what it has to say (`rules.proof_problem`)."""

    acting: bool
    risk: str
    level: str = ""
    price: Decimal = Decimal(0)
    timeout: int = 30
    proof: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What came back of one call, before it is cleaned."""

    texts: tuple[str, ...]
    left_out: int = 0
    data: Any = None
    is_error: bool = False


class ServerFailed(Exception):
    """`asked`: the tool's call may have reached the server, so its effect is unknown. `code` is ours: no_answer,
    too_slow, too_many_tools, tool_gone, tool_changed, answer_too_large, answer_packed, address_inside, …"""

    def __init__(self, code: str, *, asked: bool = False, seen: Descriptor | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.asked = asked
        self.seen = seen
