"""Who opens the credentials that a tool needs, and who may touch the company's documents? The rooms above register
themselves; this one only knows the shapes.

`connections` registers an opener and `work` a library when Django is ready. Until then, and without them, a tool that
needs one does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from apps.guard.schemas import CallContext, CallFailed
from apps.skills.schemas import ToolSpec


class OpenedAccount(NamedTuple):
    """What one run is given. `secret`: JSON `{name: value}` for the descriptor that only the script's process inherits.
    `egress`: the `host:port` it may reach. `env`: settings that are no secrets. `account`: whose they are."""

    secret: bytes
    egress: tuple[str, ...]
    env: dict[str, str]
    account: UUID


# Outside of any transaction, inside no scope: the opener enters its own. Raises `CallFailed`, effect-free, when there
# is no active connection of the tenant with the tool's permissions.
Opener = Callable[[CallContext, ToolSpec], OpenedAccount]
# The account, and the new credentials that a run handed back over its output descriptor (`SandboxResult.secret_out`),
# the same JSON.
Storer = Callable[[CallContext, UUID, bytes], None]

_openers: list[Opener] = []
_storers: list[Storer] = []


def register_credentials(opener: Opener, keeper: Storer | None = None) -> None:
    """Called once, by `connections`, in `ready()`."""
    _openers[:] = [opener]
    _storers[:] = [keeper] if keeper else []


def open_credentials(ctx: CallContext, tool: ToolSpec) -> OpenedAccount:
    """For one call of a tool with `connection`. Raises `CallFailed` `connection_missing` when nobody can."""
    if not _openers:
        raise CallFailed("connection_missing", "There is no connection for this tool.", effect_free=True)
    return _openers[0](ctx, tool)


def store_credentials(ctx: CallContext, account: UUID, secret: bytes) -> None:
    """What the run handed back is kept by whoever opened; without a keeper it is dropped."""
    for keeper in _storers:
        keeper(ctx, account, secret)


# Files of `/sandbox/knowledge` for one call: which documents there are, and the text of the one that it names.
Shelf = Callable[[CallContext], Mapping[str, bytes]]
# Has the change that this very call was approved for carried out, and says what became of it. Blocking, outside of any
# transaction. Raises `CallFailed`.
Editor = Callable[[CallContext], dict[str, Any]]


class Library(NamedTuple):
    shelf: Shelf
    editor: Editor


_libraries: list[Library] = []


def register_library(library: Library) -> None:
    """Called once, by `work`, in `ready()`."""
    _libraries[:] = [library]


def library() -> Library:
    """Raises `CallFailed` `knowledge_missing` when nobody has registered."""
    if not _libraries:
        raise CallFailed("knowledge_missing", "There are no documents for this tool.", effect_free=True)
    return _libraries[0]
