"""Limits on messages and model runs per minute (conversation, address, tenant), on sockets and on waiting turns.

Counted in Redis over all processes, in one round trip and before anything is stored: what is refused is not kept, is
reported as refused, and is sent again by the widget. While Redis is away messages are accepted all the same: the limits
protect capacity, not a secret; the pace of each socket and the bound on waiting turns hold in the process and in the
database, and the guard's budgets bound the cost of models. Called by the sockets, and before a model is asked.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING
from uuid import UUID

from django.conf import settings

from apps.access.tokens import Visitor
from apps.tenants.queries import visitor_limits
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext_lazy
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key, is_own_machine
from kernel.ratelimit.fixed_window import Exceeded, Limit, Unavailable
from kernel.tenancy import in_scope
from llm.models import is_builtin

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MINUTE = 60
WISHES_A_MINUTE = 120
# Signs of typing of one presence: a burst, then a steady rate.
TYPING_BURST, TYPING_A_SECOND = 5, 1.0
# Reports of one presence of what was read; one is sent for each message that was shown.
READ_BURST, READS_A_SECOND = 20, 2.0
# After a failure messages are not counted for a moment, so that a Redis that hangs holds no visitor up for long.
PAUSE_SECONDS = 1.0
_quiet_until = 0.0

TOO_FAST = gettext_lazy("You're sending messages very quickly. Please wait a moment.")
TOO_MANY_THERE = gettext_lazy("We're receiving too many messages from your network. Please wait a moment.")
TOO_MANY_HERE = gettext_lazy("We're receiving a lot of messages right now. Please wait a moment.")


@dataclass(frozen=True)
class Bounds:
    """What one tenant's visitors may do: the installation's settings, less or more where the tenant's row says so."""

    messages_a_minute: int
    address_messages_a_minute: int
    tenant_messages_a_minute: int
    sockets: int
    model_runs_a_minute: int
    tenant_model_runs_a_minute: int
    pending_turns: int
    tenant_pending_turns: int


def bounds() -> Bounds:
    """Of the scope's tenant. A socket asks once, when it begins: a change holds for those that begin later."""
    row = visitor_limits()
    own = {field.name: getattr(row, field.name, None) for field in fields(Bounds)}
    return Bounds(**{name: settings.VISITOR_LIMITS[name] if value is None else value for name, value in own.items()})


async def count_message(visitor: Visitor, bounds: Bounds, *, address: str) -> None:
    """Raises `SilasError("rate_limited")` with `retry_after` and, as `limit`, whose limit it was."""
    global _quiet_until
    if time.monotonic() < _quiet_until:
        return
    limits = _limits(visitor, bounds, address)
    used_up = await fixed_window.atry_consume(
        list(limits), otherwise=f"message_not_counted session={visitor.session_id}"
    )
    if isinstance(used_up, Unavailable):
        _quiet_until = time.monotonic() + PAUSE_SECONDS
        return
    if used_up is not None:
        whose, said = limits[used_up.limit]
        extra = {"retry_after": max(1, math.ceil(used_up.seconds)), "limit": whose}
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra=extra)


async def may_ask(tenant_id: UUID, session_id: UUID, model: str) -> bool:
    """Count one run of an outside model for this conversation and its tenant; False when there were too many within a
    minute. The built-in model is not counted."""
    if is_builtin(model):
        return True
    allowed = await in_scope(tenant_id, bounds)
    scope = Limit(f"asked:{tenant_id}:{session_id}", allowed.model_runs_a_minute, MINUTE)
    whole = Limit(f"asked:{tenant_id}", allowed.tenant_model_runs_a_minute, MINUTE)
    used_up = await fixed_window.atry_consume([scope, whole], otherwise=f"model_run_not_counted session={session_id}")
    return not isinstance(used_up, Exceeded)


async def may_remember(tenant_id: UUID, session_id: UUID) -> bool:
    """Count one wish of this conversation's model to remember something; False when there were too many within a minute
    (spec 11)."""
    limit = Limit(f"remembered:{tenant_id}:{session_id}", WISHES_A_MINUTE, MINUTE)
    used_up = await fixed_window.atry_consume([limit], otherwise=f"wish_not_counted session={session_id}")
    return not isinstance(used_up, Exceeded)


def _limits(visitor: Visitor, bounds: Bounds, address: str) -> dict[Limit, tuple[str, StrOrPromise]]:
    tenant = visitor.tenant_id
    scope = Limit(f"said:{tenant}:{visitor.session_id}", bounds.messages_a_minute, MINUTE)
    whole = Limit(f"said:{tenant}", bounds.tenant_messages_a_minute, MINUTE)
    limits: dict[Limit, tuple[str, StrOrPromise]] = {
        scope: ("conversation", TOO_FAST),
        whole: ("tenant", TOO_MANY_HERE),
    }
    # Behind a proxy that forwards no addresses everyone would share one limit.
    if not is_own_machine(address):
        there = Limit(f"said:{tenant}:at:{address_key(address)}", bounds.address_messages_a_minute, MINUTE)
        limits[there] = ("address", TOO_MANY_THERE)
    return limits
