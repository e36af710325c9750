"""Import the MCP client once, when a server is asked first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from apps.toolservers.schemas import Address, Descriptor, Reply
from kernel.first_imports import FIRST_IMPORTS


class Client(Protocol):
    """`apps.toolservers.client`, whose functions say more."""

    async def list_tools(self, address: Address) -> tuple[Descriptor, ...]: ...

    async def call_tool(
        self, address: Address, name: str, args: Mapping[str, object], *, digest: str, seconds: float
    ) -> Reply: ...


def load_client() -> Client:
    """Return the module, which brings the SDK: only a process that asks a server pays for it."""
    with FIRST_IMPORTS:
        from apps.toolservers import client

    return client
