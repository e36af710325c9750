"""Import what models run with, once in a process, when it is needed first."""

from __future__ import annotations

import asyncio
import threading

from kernel.first_imports import FIRST_IMPORTS

_ready = threading.Event()


def load() -> None:
    """Import what runs need: half a second and 40 MB, once in a process. Called before anything of pydantic-ai is
    imported in a function, by whichever function may be the first."""
    if _ready.is_set():
        return
    with FIRST_IMPORTS:
        import llm.attempts  # noqa: F401 (loaded for later)
    _ready.set()


async def loaded() -> None:
    """Wait until what runs need is imported. Not in the event loop, which answers others meanwhile."""
    if not _ready.is_set():
        await asyncio.to_thread(load)
