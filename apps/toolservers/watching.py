"""Does every server still describe what was accepted? Looked at by beat, so that a description that changed is stopped
before somebody calls its tool (rug-pull); a call looks again all the same.

A server is claimed before it is asked, by the row of its next look: of any number of workers one asks it, and one that
dies is an hour late. In a worker nothing comes into use, and nothing new is written down: that is a person's wish.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from apps.tenants.queries import over_all
from apps.toolservers import queries, services
from apps.toolservers.schemas import Address, Descriptor, NotServed
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
AT_ONCE = 8


def watch() -> int:
    """Whatever is due, of every company; returns how many servers were asked."""
    return over_all(watch_of)


def watch_of(tenant_id: UUID) -> int:
    done = 0
    while True:
        with tenant_scope(tenant_id):
            claimed = services.claim_looks(AT_ONCE)
            due = [(server_id, found) for server_id in claimed if (found := _address(server_id)) is not None]
        if not claimed:
            return done
        for (server_id, _), said in zip(due, asyncio.run(_all([found for _, found in due])), strict=True):
            with tenant_scope(tenant_id):
                _note(server_id, said)
        done += len(due)


def _address(server_id: UUID) -> Address | None:
    try:
        return queries.address_of(server_id)
    except SilasError as broken:
        services.note_failure(server_id, broken.code)
        return None


async def _all(addresses: Sequence[Address]) -> list[tuple[Descriptor, ...] | str]:
    return list(await asyncio.gather(*map(_asked, addresses)))


async def _asked(address: Address) -> tuple[Descriptor, ...] | str:
    """What it lists, or the code of why it does not."""
    from apps.toolservers.client import list_tools  # brings the SDK: only who asks a server pays for it

    try:
        return await list_tools(address)
    except NotServed as no:
        return no.code
    except Exception as error:  # noqa: BLE001 (one server's answer must not keep the others from being looked at)
        return type(error).__name__


def _note(server_id: UUID, said: tuple[Descriptor, ...] | str) -> None:
    if isinstance(said, str):
        services.note_failure(server_id, said)
    elif stopped := services.note_list(server_id, said):
        _log.warning("outside_tools_stopped server=%s tools=%s", server_id, stopped)
