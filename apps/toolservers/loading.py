"""Import the MCP client once, when a server is asked first."""

from __future__ import annotations

from types import ModuleType

from kernel.first_imports import FIRST_IMPORTS


def load_client() -> ModuleType:
    """Return `apps.toolservers.client`, which brings the SDK: only a process that asks a server pays for it."""
    with FIRST_IMPORTS:
        from apps.toolservers import client

    return client
