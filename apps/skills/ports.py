"""Who opens the credentials that a tool needs? The rooms above register themselves; this one only knows the shape.

`connections` registers an opener when Django is ready. Until then, and without it, a tool that names a connection does
not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from apps.guard.schemas import CallContext, CallFailed
from apps.skills.schemas import ToolSpec


class Opened(NamedTuple):
    """What one run is given. `secret`: JSON `{name: value}` for the descriptor that only the script's process inherits.
    `egress`: the `host:port` it may reach. `env`: settings that are no secrets. `account`: whose they are."""

    secret: bytes
    egress: tuple[str, ...]
    env: dict[str, str]
    account: UUID


# Outside of any transaction, inside no scope: the opener enters its own. Raises `CallFailed`, effect-free, when there
# is no active connection of the tenant with the tool's permissions.
Opener = Callable[[CallContext, ToolSpec], Opened]
# The account, and the new credentials that a run handed back over its output descriptor (`SandboxResult.secret_out`),
# the same JSON.
Keeper = Callable[[CallContext, UUID, bytes], None]

_openers: list[Opener] = []
_keepers: list[Keeper] = []


def register_credentials(opener: Opener, keeper: Keeper | None = None) -> None:
    """Called once, by `connections`, in `ready()`."""
    _openers[:] = [opener]
    _keepers[:] = [keeper] if keeper else []


def open_credentials(ctx: CallContext, tool: ToolSpec) -> Opened:
    """For one call of a tool with `connection`. Raises `CallFailed` `connection_missing` when nobody can."""
    if not _openers:
        raise CallFailed("connection_missing", "There is no connection for this tool.", effect_free=True)
    return _openers[0](ctx, tool)


def keep_credentials(ctx: CallContext, account: UUID, secret: bytes) -> None:
    """What the run handed back is kept by whoever opened; without a keeper it is dropped."""
    for keeper in _keepers:
        keeper(ctx, account, secret)
