"""What do workers leave to this web process? To put things before people, because only here a card can be opened.

`carry_out` is the consumer of `system_event` on the proxy queue, `show_done` of `execution_status`, which says that
something is over (`services.desk` sends both). They run where turns run.
"""

from __future__ import annotations

from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.work import rewording
from apps.work.locks import lock_item
from apps.work.provenance import account_in, all_from
from apps.work.services import batches, desk, fresh_cards, gate_pauses, proposing, routing, screening, undoing
from apps.work.services.asking import ask_a_person, is_unasked
from kernel.provenance import Origin, Traced


async def carry_out(delivery: Delivery) -> None:
    if (delivery.message.payload or {}).get("event") == desk.REWORD:
        await rewording.carry_out(delivery)
    else:
        await delivery.commit(_attend, delivery)


async def show_done(delivery: Delivery) -> None:
    assert delivery.message.task_id is not None
    await delivery.commit(undoing.offer, delivery.message.task_id)


def _attend(delivery: Delivery) -> None:
    message = delivery.message
    assert message.task_id is not None
    payload = message.payload or {}
    match payload.get("event"):
        case desk.ASK:
            _ask(message.task_id)
        case desk.ASK_AGAIN:
            _ask_again(message.task_id)
        case desk.REVIEW:
            gate_pauses.ask(UUID(payload["pause"]))
        case desk.REVIEW_OVER:
            gate_pauses.withdraw(message.task_id)
        case desk.ROUTE:
            routing.take_in(message.task_id, payload["found"], trace_id=message.trace_id)


def _ask_again(item_id: UUID) -> None:
    item = lock_item(item_id)
    if is_unasked(item):
        batches.leave(item)
        fresh_cards.ask_again(item)


def _ask(item_id: UUID) -> None:
    item = lock_item(item_id)
    if is_unasked(item):
        wanted = screening.wanted_of(item.spec.calls, screening.tools_in(item.spec.skills))
        if account_in(item.spec.body) is None:
            proposing.tell_origins(item, wanted, all_from(Traced(Origin.AUTHOR)))
        ask_a_person(item, wanted, None)
