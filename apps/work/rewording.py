"""How is a draft worded anew? By the deployment's planner, outside of every scope, in a web process: its answer is a
new draft for a person and nothing else (spec 8.2). `carry_out` is called by `attending` for what `desk.reword` owes."""

from __future__ import annotations

import time

from apps.bus.deliveries import Delivery
from apps.work.planner import paid_run
from apps.work.services import drafting
from apps.work.services.drafting import RewordingJob
from kernel.llm.models import is_builtin
from kernel.tenancy import in_scope


async def carry_out(delivery: Delivery) -> None:
    job = await in_scope(delivery.tenant_id, drafting.open_job, delivery.message)
    if job is None:
        return
    started = time.monotonic()
    words = await _worded(job)
    await delivery.commit(drafting.take, job, words, seconds=round(time.monotonic() - started, 3))


async def _worded(job: RewordingJob) -> str:
    """The new words; "" where no model can be asked, or another than the deployment's own answered."""
    run = None if is_builtin(job.model_name) else await paid_run(job)
    return "" if run is None or run.fell_back else run.output.message.strip()
