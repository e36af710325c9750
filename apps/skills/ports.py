"""Ports through which the rooms above provide credentials and documents to a tool's run.

`connections` registers an opener of credentials and `work` a library of documents when Django is ready. Without them, a
tool that needs one does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from apps.guard.schemas import CallContext, CallFailed
from apps.skills.schemas import ToolSpec
from kernel.language import gettext


class OpenedAccount(NamedTuple):
    """What one run is given of an account.

    `secret`: JSON `{name: value}` for the descriptor that only the script's process inherits. `egress`: the `host:port`
    places it may reach. `env`: settings that are no secrets. `account`: the connection's id.
    """

    secret: bytes
    egress: tuple[str, ...]
    env: dict[str, str]
    account: UUID


# Called outside of any transaction and scope; the opener enters its own scope. Raises `CallFailed`, effect-free, when
# there is no active connection of the tenant with the tool's permissions.
Opener = Callable[[CallContext, ToolSpec], OpenedAccount]
# Stores the new credentials of the account that a run handed back over its output descriptor
# (`SandboxResult.secret_out`), in the same JSON.
Storer = Callable[[CallContext, UUID, bytes], None]

_openers: list[Opener] = []
_storers: list[Storer] = []


def register_credentials(opener: Opener, keeper: Storer | None = None) -> None:
    """Register the opener; called once, by `connections`, in `ready()`."""
    _openers[:] = [opener]
    _storers[:] = [keeper] if keeper else []


def open_credentials(ctx: CallContext, tool: ToolSpec) -> OpenedAccount:
    """Open the account for one call of a tool with `connection`. Raises `CallFailed` `connection_missing` without an
    opener."""
    if not _openers:
        raise CallFailed("connection_missing", gettext("No account is connected for this tool."), effect_free=True)
    return _openers[0](ctx, tool)


def store_credentials(ctx: CallContext, account: UUID, secret: bytes) -> None:
    """Store what the run handed back; without a storer it is dropped."""
    for keeper in _storers:
        keeper(ctx, account, secret)


# Returns the files of `/sandbox/knowledge` for one call: the list of documents, and the text of the one that it names.
Shelf = Callable[[CallContext], Mapping[str, bytes]]
# Carries out the change that this very call was approved for, and returns its result. Blocking, outside of any
# transaction. Raises `CallFailed`.
Editor = Callable[[CallContext], dict[str, object]]


class Library(NamedTuple):
    shelf: Shelf
    editor: Editor


_libraries: list[Library] = []


def register_library(library: Library) -> None:
    """Register the library; called once, by `work`, in `ready()`."""
    _libraries[:] = [library]


def library() -> Library:
    """Raises `CallFailed` `knowledge_missing` when none is registered."""
    if not _libraries:
        raise CallFailed("knowledge_missing", gettext("No documents are available for this tool."), effect_free=True)
    return _libraries[0]
