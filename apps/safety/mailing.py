"""How does a code reach a person by letter, where the installation wants it to? (ADR 70)

A web process makes the code with the letter and forgets it: it stands in that letter alone. Off unless
`SILAS_SAFETY_MAIL_CODES` is on and there is a mail server. A letter that does not arrive is not sent again; the console
shows another code at any time.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail

from apps.safety.services import claim_letters
from apps.safety.services.challenges import CodeLetter
from apps.tenants.letters import can_send
from apps.tenants.queries import over_all
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
_BODY = """{agent} is held: {reason}

What it intends:
{hint}

The code: {code}

Give it to the agent only if it may go on. It works once and for {seconds} seconds; a code that somebody looks at on the
console makes it void. To let the agent go on without a code, or to leave it stopped, open {where}.
"""


def send_due() -> int:
    """Returns how many letters left. In a web process, outside of any scope: no worker knows people's addresses."""
    return over_all(send_due_of) if _may_send() else 0


def send_due_of(tenant_id: UUID) -> int:
    """Those of one company."""
    if not _may_send():
        return 0
    with tenant_scope(tenant_id):
        due = claim_letters()
    return sum(_sent(letter, address) for letter in due for address in letter.addresses)


def _may_send() -> bool:
    return bool(settings.SAFETY_MAIL_CODES) and can_send()


def _sent(letter: CodeLetter, address: str) -> bool:
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
        return False
    return True
