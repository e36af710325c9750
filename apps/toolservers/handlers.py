"""Handler of `tool_server_check`, a recurring job of each server with tools in use: check what the server describes.

A description that changed is suspended before its tool is called (rug pull); a call compares it again all the same. A
worker accepts nothing and stores nothing new: that needs a person's request.
"""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.toolservers import queries, services
from apps.toolservers.loading import load_client
from apps.toolservers.schemas import Address, Descriptor, ServerFailed
from kernel.errors import SilasError
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)


async def check_server(delivery: Delivery) -> None:
    server_id = UUID(delivery.message.subject)
    address = await in_scope(delivery.tenant_id, _address, server_id)
    await delivery.reschedule(
        _record, server_id, await _list_tools(address) if isinstance(address, Address) else address
    )


def _address(server_id: UUID) -> Address | str | None:
    """Return None for a server that is no longer monitored, and a code for one that cannot be asked."""
    if not services.is_monitored(server_id):
        return None
    try:
        return queries.address_of(server_id)
    except SilasError as error:
        return error.code


async def _list_tools(address: Address) -> tuple[Descriptor, ...] | str:
    """Return what the server lists, or the code of why it does not."""
    client = load_client()
    try:
        return await client.list_tools(address)
    except ServerFailed as failure:
        return failure.code
    except Exception as error:  # noqa: BLE001 (owners are told of any fault in the answer)
        return type(error).__name__


def _record(server_id: UUID, listed: tuple[Descriptor, ...] | str | None) -> datetime | None:
    if isinstance(listed, str):
        services.record_failure(server_id, listed)
    elif listed is not None and (stopped := services.compare_listing(server_id, listed)):
        _log.warning("outside_tools_stopped server=%s tools=%s", server_id, stopped)
    return services.next_check_at(server_id)


register_job(Kind.TOOL_SERVER_CHECK, check_server, recurring=True, max_concurrency=8)
