"""Handler of `SAFETY_CODE_MAIL`: e-mail a code to the people who may let an agent continue.

The trusted worker creates the code together with the e-mail, which is the only place where it exists. Off unless
`SILAS_SAFETY_MAIL_CODES` is on and a mail server is configured. A failed e-mail is not sent again; the console shows
another code at any time.
"""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from apps.bus.deliveries import Delivery
from apps.safety.services import claim_code_email
from apps.safety.services.challenges import CodeEmail
from apps.tenants.emails import can_send
from kernel.language import in_language
from kernel.tenancy import in_scope

_log = logging.getLogger(__name__)
_BODY = gettext_noop("""{agent} is on hold: {reason}

Intended action:
{hint}

The code: {code}

Give this code to the agent only if it may continue. It works once, within {seconds} seconds. Showing a new code in the
console makes this one invalid. To let the agent continue without a code, or to keep it stopped, open {where}.
""")


async def send_code(delivery: Delivery) -> None:
    """Send the e-mail for the hold that the message's scope names."""
    if not (settings.SAFETY_MAIL_CODES and can_send()):
        return
    email = await in_scope(delivery.tenant_id, claim_code_email, UUID(delivery.message.subject))
    if email is not None:
        for address, language in email.addresses.items():
            await asyncio.to_thread(_send, email, address, language)


def _send(email: CodeEmail, address: str, language: str) -> None:
    """Send each person their own e-mail in their language, so that no recipient sees the others."""
    with in_language(language):
        subject, body = _("An agent is waiting for your decision"), _(_BODY)
        where = (
            f"{settings.PASSKEY_ORIGIN}/console/safety/" if settings.PASSKEY_ORIGIN else _("the console, under Safety")
        )
    hold = email.hold
    values = {
        "agent": hold.agent.name,
        "reason": hold.reason,
        "hint": hold.hint[:1000],
        "seconds": hold.challenge_seconds,
    }
    try:
        send_mail(subject, body.format(**values, code=email.code, where=where), None, [address])
    except Exception as error:  # noqa: BLE001 (one failed e-mail must not stop the others)
        # The error's own text may quote the e-mail, hence only its type.
        _log.warning("safety_letter_not_sent: %s", type(error).__name__)
