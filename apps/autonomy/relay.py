"""How does what is owed to the outside get there? A web process sends it, because no worker knows people's addresses.

Claimed in one scope, sent outside of any, settled in another. A webhook's letter is signed: HMAC-SHA256 over its time
and body. An address that leads into the house's own network is refused by its words when it is typed, and by what it
stands for each time a letter is sent; that is looked up once, and called. Of an answer only the status is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from datetime import datetime
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

import httpx2
from django.conf import settings
from django.core.mail import send_mail

from apps.autonomy.enums import Channel
from apps.autonomy.models import Outbox
from apps.autonomy.services import notice_letters, sending
from apps.autonomy.services.notice_letters import NoLetter
from apps.autonomy.services.webhooks import secret_of
from apps.tenants.models import User
from kernel.canonical import canonical_bytes
from kernel.knocking import NoWayThere, place_of
from kernel.tenancy import over_each, tenant_scope

_log = logging.getLogger(__name__)

SIGNATURE, EVENT, DELIVERY = "Silas-Signature", "Silas-Event", "Silas-Delivery"
# For each step, and for a whole letter: a receiver that answers byte by byte holds nobody up.
_SECONDS, _WHOLE_SECONDS = 5.0, 10.0
GOOD = range(200, 300)


class NotSent(Exception):
    """`for_good`: no other try would go better; `until`: it is not due before."""

    def __init__(self, code: str, *, for_good: bool = False, until: datetime | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.for_good = for_good
        self.until = until


def send_due() -> int:
    """Everything that is due, of every tenant; returns how many were sent. In a web process, outside of any scope."""
    return over_each(sending.owing_tenants(), _send_of)


def _send_of(tenant_id: UUID) -> int:
    with tenant_scope(tenant_id):
        rows = sending.claim()
    done = 0
    for row in rows:
        problem = _tried(tenant_id, row)
        with tenant_scope(tenant_id):
            if problem is None:
                done += sending.sent(row)
            elif problem.until is not None:
                sending.later(row, problem.until)
            else:
                sending.failed(row, problem.code, for_good=problem.for_good)
    return done


def _tried(tenant_id: UUID, row: Outbox) -> NotSent | None:
    try:
        _post(row) if row.channel == Channel.WEBHOOK else _mail(tenant_id, row)
    except NotSent as problem:
        return problem
    except Exception as error:  # noqa: BLE001 (one letter's fault must not keep the others)
        return NotSent(type(error).__name__)
    return None


def _post(row: Outbox) -> None:
    assert row.webhook is not None
    moment, body = str(int(time.time())), canonical_bytes({"id": str(row.pk), **row.body})
    headers = {
        "Content-Type": "application/json",
        EVENT: row.event,
        DELIVERY: str(row.pk),
        SIGNATURE: f"t={moment},v1={signature(secret_of(row.webhook), moment, body)}",
    }
    status = deliver(row.webhook.url, body, headers)
    if status not in GOOD:
        raise NotSent(f"http_{status}", for_good=status == 410)


def deliver(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Outside of any scope; the status of the answer. Raises `NotSent` for an address inside of the house."""
    parts = urlsplit(url)
    place = _place_of(parts)
    return asyncio.run(asyncio.wait_for(_knock(place, parts, body, headers), _WHOLE_SECONDS))


async def _knock(place: str, parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """The status alone: whatever else it answers, however long or slowly, is not read."""
    headers, named = {**headers, "Host": parts.netloc}, {"sni_hostname": parts.hostname}
    client = httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False)
    async with client, client.stream("POST", place, content=body, headers=headers, extensions=named) as answer:
        return int(answer.status_code)


def signature(secret: bytes, moment: str, body: bytes) -> str:
    """What a receiver computes again: over `moment.body`, so that an old letter shows its age."""
    return hmac.new(secret, moment.encode() + b"." + body, hashlib.sha256).hexdigest()


def _place_of(parts: SplitResult) -> str:
    """Raises `NotSent` for an address inside of the house: its database, its cache, the machine's own metadata."""
    try:
        return place_of(parts, inside_too=settings.WEBHOOKS_PRIVATE)
    except NoWayThere as no:
        raise NotSent(no.code, for_good=no.for_good) from None


def _mail(tenant_id: UUID, row: Outbox) -> None:
    """Without a mail server there is no letter: the console's notice is the record."""
    if not settings.EMAIL_HOST:
        raise NotSent("no_mail_server", for_good=True)
    if row.notice_id is not None:
        _mail_notice(tenant_id, row)
        return
    assert row.user is not None
    with tenant_scope(tenant_id):
        address = User.objects.filter(pk=row.user.pk, is_active=True, memberships__isnull=False).values_list("email")
        found = address.first()
    if found is None:
        raise NotSent("no_address", for_good=True)
    counts = row.body.get("counts", {})
    said = f"{counts.get('findings', 0)} findings, {counts.get('proposals', 0)} proposals. Read them in the console."
    send_mail(" ".join(f"Done: {row.body['task']}".split()), said, None, [found[0]])


def _mail_notice(tenant_id: UUID, row: Outbox) -> None:
    with tenant_scope(tenant_id):
        if row.user is None:
            notice_letters.share_out(row)
            return
        letter = notice_letters.letter_for(row)
    if isinstance(letter, NoLetter):
        raise NotSent(letter.code, for_good=True, until=letter.until)
    send_mail(letter.subject, letter.text, None, [letter.address])
    with tenant_scope(tenant_id):
        notice_letters.sent_with(letter.others)
