"""Handlers of what this room has due: triggers, sessions that wait for a place, checks of running ones, suggestions.

Registered in `receivers`. Triggers, admission and watches run in `upkeep` workers, suggestions in `trusted` ones: they
open cards.
"""

from __future__ import annotations

from uuid import UUID

from django.db import Error as DatabaseError

from apps.autonomy.services import admission, calibrating, dispatching, dividing, halting, preferring, suggesting
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.schemas import AlreadyProcessed, Lease, LeaseLost
from kernel.tenancy import in_scope, run_isolated


async def trigger(delivery: Delivery) -> None:
    """Begin what one trigger is due for. A trigger whose rows cannot be read is switched off, with its owner told."""
    trigger_id = UUID(delivery.message.subject)
    try:
        await delivery.repeat(dispatching.dispatch, trigger_id, delivery.lease)
    except (LeaseLost, AlreadyProcessed, DatabaseError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever cannot be read, it is this trigger's)
        await delivery.repeat(dispatching.give_up, trigger_id, error)


async def admit(delivery: Delivery) -> None:
    """Begin the sessions that collect, then let in those for which there is room."""
    await delivery.commit(_admit, delivery.lease)


def _admit(lease: Lease) -> None:
    bus.absorb(lease)
    dividing.collect()
    admission.admit_waiting()


async def watch(delivery: Delivery) -> None:
    await delivery.repeat(halting.watch, UUID(delivery.message.subject))


async def look(delivery: Delivery) -> None:
    """Look for suggestions at each chatbot of the company; what is wrong with one stops no other."""
    for deployment_id in await in_scope(delivery.tenant_id, suggesting.chatbots_to_look_at):
        await in_scope(delivery.tenant_id, run_isolated, _look, deployment_id, lambda _: None)
    await delivery.repeat(suggesting.next_look)


def _look(deployment_id: UUID) -> None:
    calibrating.evaluate(deployment_id)
    preferring.infer(deployment_id)
    suggesting.look_around(deployment_id)
