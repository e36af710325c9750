"""Deliver what the outbox owes: webhooks, and mail about tasks and notices, in a worker that holds the signing key,
because the other workers know no people's addresses.

A row is read in one scope, sent outside of any, settled in another. A webhook's letter is signed: HMAC-SHA256 over its
time and body. An address that leads into the house's own network is refused by its words when it is typed, and by what
it stands for each time a letter is sent; that is looked up once, and called. Of an answer only the status is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
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
from apps.autonomy.services.notice_letters import Letter, NoLetter
from apps.autonomy.services.webhooks import secret_of
from apps.bus.deliveries import Delivery
from apps.bus.models import QueueMessage
from apps.tenants.models import User
from kernel.canonical import canonical_bytes
from kernel.clock import now
from kernel.http.resolver import AddressRefused, resolve_url
from kernel.tenancy import in_scope

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


async def carry_out(delivery: Delivery) -> None:
    """Carry out one `OUTBOX_DELIVERY`. The row's scope on the bus is its own, so no letter waits for another."""
    row = await in_scope(delivery.tenant_id, sending.waiting, UUID(delivery.message.subject))
    if row is None:
        return
    problem: NotSent | None = None
    others: tuple[UUID, ...] = ()
    try:
        if row.channel == Channel.WEBHOOK:
            await _post(row)
        else:
            others = await _mail(delivery.tenant_id, row)
    except NotSent as refusal:
        problem = refusal
    await in_scope(delivery.tenant_id, _settle, delivery, row, problem, others)


def give_up(message: QueueMessage) -> bool:
    """The row's deliveries failed for good. The owners are told so of a webhook."""
    row = sending.waiting(UUID(message.subject))
    if row is None:
        return False
    sending.failed(row, message.reason, for_good=True)
    return row.channel == Channel.WEBHOOK


def _settle(delivery: Delivery, row: Outbox, problem: NotSent | None, others: tuple[UUID, ...]) -> None:
    if problem is None:
        sending.sent(row)
        notice_letters.sent_with(others)
        delivery.finish()
    elif problem.until is not None:
        delivery.defer(max((problem.until - now()).total_seconds(), 1), problem.code)
    elif (seconds := sending.failed(row, problem.code, for_good=problem.for_good)) is not None:
        delivery.defer(seconds, problem.code)
    else:
        delivery.finish()


async def _post(row: Outbox) -> None:
    assert row.webhook is not None
    moment, body = str(int(time.time())), canonical_bytes({"id": str(row.pk), **row.body})
    headers = {
        "Content-Type": "application/json",
        EVENT: row.event,
        DELIVERY: str(row.pk),
        SIGNATURE: f"t={moment},v1={signature(secret_of(row.webhook), moment, body)}",
    }
    status = await deliver(row.webhook.url, body, headers)
    if status not in GOOD:
        raise NotSent(f"http_{status}", for_good=status == 410)


async def deliver(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Outside of any scope; the status of the answer. Raises `NotSent`, for good for an address inside of the house."""
    parts = urlsplit(url)
    try:
        place = await asyncio.to_thread(resolve_url, parts, allow_private=settings.WEBHOOKS_PRIVATE)
        return await asyncio.wait_for(_knock(place, parts, body, headers), _WHOLE_SECONDS)
    except AddressRefused as no:
        raise NotSent(no.code, for_good=no.is_permanent) from None
    except Exception as error:  # noqa: BLE001 (a receiver fails in many ways)
        raise NotSent(type(error).__name__) from None


async def _knock(place: str, parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """The status alone: whatever else it answers, however long or slowly, is not read."""
    headers, named = {**headers, "Host": parts.netloc}, {"sni_hostname": parts.hostname}
    client = httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False)
    async with client, client.stream("POST", place, content=body, headers=headers, extensions=named) as answer:
        return int(answer.status_code)


def signature(secret: bytes, moment: str, body: bytes) -> str:
    """What a receiver computes again: over `moment.body`, so that an old letter shows its age."""
    return hmac.new(secret, moment.encode() + b"." + body, hashlib.sha256).hexdigest()


async def _mail(tenant_id: UUID, row: Outbox) -> tuple[UUID, ...]:
    """Send it and return which other rows it told about. Without a mail server there is no letter: the console's notice
    is the record."""
    if not settings.EMAIL_HOST:
        raise NotSent("no_mail_server", for_good=True)
    if row.notice_id is not None and row.user_id is None:
        await in_scope(tenant_id, notice_letters.share_out, row)
        return ()
    letter = await in_scope(tenant_id, notice_letters.letter_for if row.notice_id else _result_letter, row)
    if isinstance(letter, NoLetter):
        raise NotSent(letter.code, for_good=True, until=letter.until)
    try:
        await asyncio.to_thread(send_mail, letter.subject, letter.text, None, [letter.address])
    except Exception as error:  # noqa: BLE001 (a mail server refuses in many ways)
        raise NotSent(type(error).__name__) from None
    return letter.others


def _result_letter(row: Outbox) -> Letter | NoLetter:
    """How many things a session found, without a word of them; inside a scope."""
    assert row.user is not None
    person = User.objects.filter(pk=row.user.pk, is_active=True, memberships__isnull=False).first()
    if person is None:
        return NoLetter("no_address")
    counts = row.body.get("counts", {})
    said = f"{counts.get('findings', 0)} findings, {counts.get('proposals', 0)} proposals. Read them in the console."
    return Letter(person.email, " ".join(f"Done: {row.body['task']}".split()), said)
