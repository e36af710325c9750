"""Mail a code to the people who may let an agent go on, where the installation wants it (ADR 70).

A worker that holds the signing key makes the code with the letter and forgets it: it stands in that letter alone. Off
unless `SILAS_SAFETY_MAIL_CODES` is on and there is a mail server. A letter that does not arrive is not sent again; the
console shows another code at any time.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail

from apps.bus.deliveries import Delivery
from apps.safety.services import claim_letter
from apps.safety.services.challenges import CodeLetter
from apps.tenants.emails import can_send
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
_BODY = """{agent} is held: {reason}

What it intends:
{hint}

The code: {code}

Give it to the agent only if it may go on. It works once and for {seconds} seconds; a code that somebody looks at on the
console makes it void. To let the agent go on without a code, or to leave it stopped, open {where}.
"""


async def send_code(delivery: Delivery) -> None:
    """Carry out one `SAFETY_CODE_MAIL`, whose scope on the bus is its hold."""
    if not (settings.SAFETY_MAIL_CODES and can_send()):
        return
    letter = await in_scope(delivery.tenant_id, claim_letter, UUID(delivery.message.subject))
    if letter is not None:
        for address in letter.addresses:
            await asyncio.to_thread(_send, letter, address)


def _send(letter: CodeLetter, address: str) -> None:
    """Each person has a letter of their own: nobody reads who else is asked. The error's own words may quote it."""
    where = f"{settings.PASSKEY_ORIGIN}/console/safety/" if settings.PASSKEY_ORIGIN else "the console, under Safety"
    hold = letter.hold
    told = {
        "agent": hold.agent.name,
        "reason": hold.reason,
        "hint": hold.hint[:1000],
        "seconds": hold.challenge_seconds,
    }
    try:
        send_mail("An agent waits for you", _BODY.format(**told, code=letter.code, where=where), None, [address])
    except Exception as error:  # noqa: BLE001 (one letter's fault must not keep the others)
        _log.warning("safety_letter_not_sent: %s", type(error).__name__)
