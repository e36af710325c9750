"""How do members hear of new cards, and of agents that wait for them? A web process sends what `approvals` and `safety`
have claimed, because no worker knows people's addresses; outside of any scope, through the same door as webhooks
(`relay.deliver`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail

from apps.approvals import webpush
from apps.approvals.services import alerts
from apps.approvals.services.alerts import REVIEW, Letter, Push
from apps.autonomy import relay
from apps.safety.services import notices
from kernel.clock import now
from kernel.tenancy import over_each, tenant_scope

_log = logging.getLogger(__name__)
_GONE = (404, 410)
_GRAVE = ("high", "irreversible")


def send_due() -> int:
    """Whatever is due, of every tenant; returns how many messages arrived. In a web process, outside of any scope."""
    return over_each(alerts.waiting_tenants(), _send_cards) + over_each(notices.waiting_tenants(), _send_notices)


def send_due_of(tenant_id: UUID) -> int:
    """Those of one company."""
    return _send_cards(tenant_id) + _send_notices(tenant_id)


def _send_cards(tenant_id: UUID) -> int:
    return _send_of(tenant_id, alerts.claim_alerts)


def _send_notices(tenant_id: UUID) -> int:
    return _send_of(tenant_id, notices.claim_notices)


def _send_of(tenant_id: UUID, claim: Callable[[datetime], Sequence[Push | Letter]]) -> int:
    with tenant_scope(tenant_id):
        due = claim(now())
    gone: list[UUID] = []
    done = sum(_pushed(alert, gone) if isinstance(alert, Push) else _mailed(alert) for alert in due)
    if gone:
        with tenant_scope(tenant_id):
            alerts.drop_gone(gone)
    return done


def _pushed(push: Push, gone: list[UUID]) -> bool:
    """A push service that is away costs one message: the letter follows to whoever has not looked."""
    if push.subscription_id in gone:
        return False
    body = webpush.sealed_for(push.endpoint, push.p256dh, push.auth, push.said)
    try:
        headers = webpush.headers_for(push.endpoint, urgent=push.said["risk"] in _GRAVE)
        status = asyncio.run(relay.deliver(push.endpoint, body, headers))
    except Exception as error:  # noqa: BLE001 (one browser's fault must not keep the others)
        _log.warning("push_not_sent: %s", type(error).__name__)
        return False
    if status in _GONE:
        gone.append(push.subscription_id)
    return status in relay.GOOD


def _mailed(letter: Letter) -> bool:
    if not settings.EMAIL_HOST:
        return False
    total = sum(letter.counts.values())
    counted = "\n".join(f"{risk} risk: {count}" for risk, count in letter.counts.items())
    where = f"{settings.PASSKEY_ORIGIN}{REVIEW}" if settings.PASSKEY_ORIGIN else "the console, under Review"
    subject = f"{total} decision{'' if total == 1 else 's'} waiting for you"
    try:
        send_mail(subject, f"{counted}\n\nDecide: {where}\n", None, [letter.address])
    except Exception as error:  # noqa: BLE001 (the same)
        _log.warning("letter_not_sent: %s", type(error).__name__)
        return False
    return True
