"""Shapes of outside tools: a server's description, the terms a person accepted, a server's address. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Descriptor:
    """One tool as its server describes it: untrusted text until a person has read it. `digest` is of all of it,
    `problem` says why it cannot be accepted as it is."""

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    digest: str
    problem: str = ""


@dataclass(frozen=True)
class Address:
    """Where a server is and its secret. For one in the sandbox, `folder` holds its files and `argv` names its script
    and arguments. `secret` is in no repr, row or log."""

    transport: str
    url: str = ""
    argv: tuple[str, ...] = ()
    folder: Path | None = None
    egress: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class RemoteTool:
    """An accepted tool, ready to be offered. `runs`: where a call is carried out, and with which key. `schema` is
    closed and holds no reference; `ref` is the pinned set."""

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
    """The terms on which a person accepts a tool: what it may do, who may use it, what one call costs, how long it may
    take.

    `proof`, of an acting tool: `{tool, args, expect}`, the reading tool of the same server that says whether it was
    done, its arguments, and what it has to answer (`rules.proof_problem`).
    """

    acting: bool
    risk: str
    level: str = ""
    price: Decimal = Decimal(0)
    timeout: int = 30
    proof: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """The answer to one call, before it is cleaned."""

    texts: tuple[str, ...]
    left_out: int = 0
    data: Any = None
    is_error: bool = False


class ServerFailed(Exception):
    """A server did not answer. `asked`: the tool's call may have reached it, so its effect is unknown. `code` is ours:
    no_answer, too_slow, too_many_tools, tool_gone, tool_changed, answer_too_large, answer_packed, address_inside, …"""

    def __init__(self, code: str, *, asked: bool = False, seen: Descriptor | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.asked = asked
        self.seen = seen
