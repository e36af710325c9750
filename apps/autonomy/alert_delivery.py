"""Tell members of new cards, and of agents that wait for them, by push notification and by e-mail.

Runs in a trusted worker: the other workers do not know people's addresses. Pushes leave as webhooks do
(`webhook_delivery.post`). An alert is marked as sent before it is sent (`approvals.cards.alerts`,
`safety.services.notices`), so it is never sent twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.approvals.cards import alerts, webpush
from apps.approvals.cards.alerts import PUSH_SECONDS, REVIEW_PATH, AlertEmail, Push
from apps.autonomy import webhook_delivery
from apps.bus.deliveries import Delivery
from apps.safety.services import notices
from kernel.clock import now
from kernel.language import in_language
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
# Answers of a push service that say a browser's subscription no longer exists.
_EXPIRED = (404, 410)
_URGENT = ("high", "irreversible")


async def deliver_card_alerts(delivery: Delivery) -> None:
    """Carry out one `CARD_ALERT`, whose bus scope is its card.

    Sends what is due about any card, and is delivered again when something may be due about this one.
    """
    expired = await _send(await in_scope(delivery.tenant_id, alerts.claim_alerts, now()))
    await in_scope(delivery.tenant_id, _wait_for_next, delivery, expired)


def _wait_for_next(delivery: Delivery, expired: Sequence[UUID]) -> None:
    alerts.remove_expired_subscriptions(expired)
    moment = now()
    due_at = alerts.next_alert_at(UUID(delivery.message.subject), moment)
    if due_at is None:
        delivery.finish()
    else:
        delivery.defer((due_at - moment).total_seconds(), alerts.NOT_YET)


async def deliver_hold_alerts(delivery: Delivery) -> None:
    """Carry out one `HOLD_ALERT`.

    A company's holds share one bus scope, so those that come while this one pauses after a push are sent together.
    """
    pushes = await in_scope(delivery.tenant_id, notices.claim_notices, now())
    expired = await _send(pushes)
    await in_scope(delivery.tenant_id, _pause, delivery, expired, bool(pushes))


def _pause(delivery: Delivery, expired: Sequence[UUID], sent_any: bool) -> None:
    alerts.remove_expired_subscriptions(expired)
    # Nothing more until the pause is over; holds that come meanwhile are sent together.
    if sent_any:
        delivery.defer(PUSH_SECONDS, "pause")
    else:
        delivery.finish()


async def _send(due: Sequence[Push | AlertEmail]) -> list[UUID]:
    """Send these; return the subscriptions that no longer exist."""
    expired: list[UUID] = []
    for alert in due:
        if isinstance(alert, AlertEmail):
            await asyncio.to_thread(_send_email, alert)
        elif alert.subscription_id not in expired and await _push(alert) in _EXPIRED:
            expired.append(alert.subscription_id)
    return expired


async def _push(push: Push) -> int:
    """Return the push service's status, 0 for none.

    An unreachable push service costs one message: the e-mail still follows if the member has not looked.
    """
    try:
        headers = webpush.push_headers(push.endpoint, urgent=push.payload["risk"] in _URGENT)
        body = webpush.encrypt_payload(push.endpoint, push.p256dh, push.auth, push.payload)
        return await webhook_delivery.post(push.endpoint, body, headers)
    except Exception as error:  # noqa: BLE001 (an error at one browser must not keep the others from theirs)
        _log.warning("push_not_sent: %s", getattr(error, "code", type(error).__name__))
        return 0


def _send_email(letter: AlertEmail) -> None:
    if not settings.EMAIL_HOST:
        return
    with in_language(letter.language):
        subject, text = _write_email(letter)
    try:
        send_mail(subject, text, None, [letter.address])
    except Exception as error:  # noqa: BLE001 (a mail server refuses in many ways)
        _log.warning("letter_not_sent: %s", type(error).__name__)


def _write_email(letter: AlertEmail) -> tuple[str, str]:
    """Return the subject and the text, in the active language."""
    total = sum(letter.counts.values())
    by_risk = {
        "low": _("low risk: {count}"),
        "medium": _("medium risk: {count}"),
        "high": _("high risk: {count}"),
        "irreversible": _("irreversible risk: {count}"),
    }
    counts = "\n".join(by_risk[risk].format(count=count) for risk, count in letter.counts.items())
    link = f"{settings.PASSKEY_ORIGIN}{REVIEW_PATH}" if settings.PASSKEY_ORIGIN else _("the console, under Review")
    subject = ngettext("{count} decision waiting for you", "{count} decisions waiting for you", total)
    decide = _("Decide: {link}").format(link=link)
    return subject.format(count=total), f"{counts}\n\n{decide}\n"
