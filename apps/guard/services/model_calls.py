"""Make one model request between admission and charge, for callers outside of any scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from apps.guard.enums import Intent
from apps.guard.schemas import Admitted, Call, Refused, RunRef
from apps.guard.services.admission import admit
from apps.guard.services.settlement import charge
from kernel.tenancy import in_scope
from llm import loading
from llm.failures import ProviderFailed
from llm.runs import Usage

T = TypeVar("T")
# Failures that are charged: the provider may have done the work.
_MAY_COST = frozenset({"request_timeout", "unreadable_response"})


class NotAdmitted(ProviderFailed):
    """The guard refused the model run: the provider was not asked, and nothing is known of it."""


async def call_model(tenant_id: UUID, run: RunRef, call: Call, ask: Callable[[], Awaitable[tuple[T, Usage]]]) -> T:
    """Admit a model run, make it and charge it. Raises `NotAdmitted` when the guard refuses it, else `ProviderFailed`
    without an answer."""
    await loading.loaded()
    admitted = await in_scope(tenant_id, admit, run, Intent.CONVERSE, call)
    if not isinstance(admitted, Admitted):
        raise NotAdmitted(admitted.code.value if isinstance(admitted, Refused) else "not_admitted")
    # Charged as it stands if this is cancelled before an answer: the provider may have begun the work.
    usage, failed = Usage(requests=1), "interrupted"
    try:
        answer, usage = await ask()
        failed = ""
    except ProviderFailed as failure:
        failed = failure.reason
        usage = usage if failed in _MAY_COST else Usage()
        raise
    finally:
        await in_scope(tenant_id, charge, admitted, usage, failed=failed)
    return answer
