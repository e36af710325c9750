"""Carry out runs: prepare the isolated copy, then play the scenarios of one chunk after another.

Registered for the queue `simulation`, which web processes and `manage.py simulate` serve (`runner`): they alone may
answer a turn and seal policy.
"""

from __future__ import annotations

import logging
from decimal import Decimal
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.registry import on_dead_letter, register_job
from apps.simulations import copies, model_visitor, player, queries, services
from apps.simulations.enums import Outcome
from apps.simulations.models import SimulationCopy
from apps.tenants.models import Deployment
from kernel.errors import SilasError, error_location
from kernel.tenancy import in_scope, in_thread, tenant_scope

_log = logging.getLogger(__name__)
BUSY_SECONDS = 2.0


async def prepare(delivery: Delivery) -> None:
    """Bring the copy in line, then enqueue the chunks. Waits while another run of the deployment goes on."""
    run_id, tenant_id = UUID(delivery.message.subject), delivery.tenant_id
    run = await in_scope(tenant_id, services.begin, run_id)
    if run is None:
        await in_scope(tenant_id, _wait_or_end, delivery, run_id)
        return
    deployment = await in_scope(tenant_id, Deployment.objects.get, pk=run.deployment_id)
    try:
        refreshed = await in_thread(copies.refresh, deployment, run.draft)
    except SilasError as error:
        await delivery.commit(services.fail, run_id, reason=str(error.code))
        return
    await delivery.commit(services.queue_chunks, run_id, refreshed.lacks)


def _wait_or_end(delivery: Delivery, run_id: UUID) -> None:
    if queries.run(run_id).finished_at is None:
        delivery.defer(BUSY_SECONDS, "another_run")
    else:
        delivery.finish()


async def play_chunk(delivery: Delivery) -> None:
    """Play the scenarios of one chunk; the last one to end the last of them ends the run. When the model that plays
    visitors can't be used, the run ends with the reason; what was played stays, and the rest can be resumed."""
    payload, tenant_id = delivery.message.payload or {}, delivery.tenant_id
    run_id = UUID(payload["run"])
    deployment, target = await in_thread(_deployment_and_copy, tenant_id, run_id)
    for result_id in map(UUID, payload["results"]):
        scenario = await in_scope(tenant_id, services.next_scenario, result_id)
        if scenario is None:
            continue
        try:
            judged = await player.play(
                target,
                scenario,
                model=model_visitor.model_for(deployment, scenario.model),
                budget_usd=await in_scope(tenant_id, queries.budget_left, run_id),
            )
        except model_visitor.PlayerFailed as failure:
            _log.warning("visitor_model_failed result=%s reason=%s", result_id, failure.reason)
            await in_scope(tenant_id, services.add_cost, result_id, failure.cost_usd)
            await delivery.commit(services.fail, run_id, reason=failure.reason)
            return
        except Exception as error:  # noqa: BLE001 (one scenario that breaks off must not keep the others from theirs)
            cause, cost = (error.error, error.cost_usd) if isinstance(error, player.BrokeOff) else (error, Decimal(0))
            _log.warning("scenario_broke_off result=%s error=%s", result_id, error_location(cause))
            await in_scope(
                tenant_id,
                services.record_result,
                result_id,
                failures=[f"broke off: {type(cause).__name__}"],
                cost_usd=cost,
                outcome=Outcome.ERROR,
            )
            continue
        await in_scope(
            tenant_id,
            services.record_result,
            result_id,
            failures=judged.failures,
            said=judged.said,
            session_id=judged.session_id,
            cost_usd=judged.cost_usd,
            player=judged.player,
            ending=judged.ending,
        )
    await delivery.commit(services.finish_if_played, run_id)


def _deployment_and_copy(tenant_id: UUID, run_id: UUID) -> tuple[Deployment, Deployment]:
    with tenant_scope(tenant_id):
        deployment = queries.run(run_id).deployment
        copy = SimulationCopy.objects.get(deployment=deployment)
    with tenant_scope(copy.copy_tenant_id):
        return deployment, Deployment.objects.get(pk=copy.copy_deployment_id)


def _give_up(message: QueueMessage) -> bool:
    """A run whose message failed for good ends as failed; owners are notified like of any dead letter."""
    run_id = (message.payload or {}).get("run") or message.subject
    services.fail(UUID(run_id), reason=message.reason.split()[0] if message.reason else "")
    return False


register_job(Kind.SIMULATION_RUN, prepare)
register_job(Kind.SIMULATION_CHUNK, play_chunk)
on_dead_letter(_give_up, Kind.SIMULATION_RUN, Kind.SIMULATION_CHUNK)
