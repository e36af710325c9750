"""Tell members of new cards, and of agents that wait for them, by push and by letter, in a worker that holds the
signing key, because the other workers know no people's addresses. Pushes leave as webhooks do (`relay.deliver`).

What is told is noted first (`approvals.services.alerts`, `safety.services.notices`) and is not told again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail

from apps.approvals import webpush
from apps.approvals.services import alerts
from apps.approvals.services.alerts import PUSH_SECONDS, REVIEW, Letter, Push
from apps.autonomy import relay
from apps.bus.deliveries import Delivery
from apps.safety.services import notices
from kernel.clock import now
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
_GONE = (404, 410)
_GRAVE = ("high", "irreversible")


async def tell_of_card(delivery: Delivery) -> None:
    """Carry out one `CARD_ALERT`, whose scope on the bus is its card: tell what is due about any card, and come back
    when something may be due about this one."""
    gone = await _tell(await in_scope(delivery.tenant_id, alerts.claim_alerts, now()))
    await in_scope(delivery.tenant_id, _wait_for_next, delivery, gone)


def _wait_for_next(delivery: Delivery, gone: Sequence[UUID]) -> None:
    alerts.drop_gone(gone)
    moment = now()
    due_at = alerts.next_look(UUID(delivery.message.subject), moment)
    if due_at is None:
        delivery.finish()
    else:
        delivery.defer((due_at - moment).total_seconds(), alerts.NOT_YET)


async def tell_of_hold(delivery: Delivery) -> None:
    """Carry out one `HOLD_ALERT`. A company's holds share one scope on the bus, so that those which come while this one
    pauses after a push are told together."""
    pushes = await in_scope(delivery.tenant_id, notices.claim_notices, now())
    gone = await _tell(pushes)
    await in_scope(delivery.tenant_id, _pause, delivery, gone, bool(pushes))


def _pause(delivery: Delivery, gone: Sequence[UUID], was_told: bool) -> None:
    alerts.drop_gone(gone)
    if was_told:
        delivery.defer(PUSH_SECONDS, "pause")
    else:
        delivery.finish()


async def _tell(due: Sequence[Push | Letter]) -> list[UUID]:
    """Send these; the browsers that are gone."""
    gone: list[UUID] = []
    for alert in due:
        if isinstance(alert, Letter):
            await asyncio.to_thread(_mail, alert)
        elif alert.subscription_id not in gone and await _push(alert) in _GONE:
            gone.append(alert.subscription_id)
    return gone


async def _push(push: Push) -> int:
    """The push service's answer, 0 for none. A push service that is away costs one message: the letter follows to
    whoever has not looked."""
    try:
        headers = webpush.headers_for(push.endpoint, urgent=push.said["risk"] in _GRAVE)
        body = webpush.sealed_for(push.endpoint, push.p256dh, push.auth, push.said)
        return await relay.deliver(push.endpoint, body, headers)
    except Exception as error:  # noqa: BLE001 (one browser's fault must not keep the others)
        _log.warning("push_not_sent: %s", getattr(error, "code", type(error).__name__))
        return 0


def _mail(letter: Letter) -> None:
    if not settings.EMAIL_HOST:
        return
    total = sum(letter.counts.values())
    counted = "\n".join(f"{risk} risk: {count}" for risk, count in letter.counts.items())
    where = f"{settings.PASSKEY_ORIGIN}{REVIEW}" if settings.PASSKEY_ORIGIN else "the console, under Review"
    subject = f"{total} decision{'' if total == 1 else 's'} waiting for you"
    try:
        send_mail(subject, f"{counted}\n\nDecide: {where}\n", None, [letter.address])
    except Exception as error:  # noqa: BLE001 (the same)
        _log.warning("letter_not_sent: %s", type(error).__name__)
