"""Post webhooks, and anything else that leaves by HTTP to an address that a customer chose.

A webhook is signed: HMAC-SHA256 over its time and body. An address inside our own network is refused by its text when
it is saved, and by what its name resolves to each time something is sent: the name is resolved once, and the resolved
address is the one that is called, so that a name cannot change in between. Only the status of an answer is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from datetime import datetime
from urllib.parse import SplitResult, urlsplit

import httpx2
from django.conf import settings

from apps.autonomy.models import Outbox
from apps.autonomy.services.webhooks import secret_of
from kernel.canonical import canonical_bytes
from kernel.http.resolver import AddressRefused, resolve_url

SIGNATURE, EVENT, DELIVERY = "Silas-Signature", "Silas-Event", "Silas-Delivery"
# Seconds for each step, and for the whole request: a receiver that answers byte by byte must not block the worker.
_STEP_SECONDS, _TOTAL_SECONDS = 5.0, 10.0


class NotSent(Exception):
    """A delivery failed. `permanent`: trying again cannot help. `until`: it is not due before that moment."""

    def __init__(self, code: str, *, permanent: bool = False, until: datetime | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.permanent = permanent
        self.until = until


async def post_row(row: Outbox) -> None:
    """Post one webhook row. Raises `NotSent`; 410 Gone is permanent."""
    assert row.webhook is not None
    moment = str(int(time.time()))
    body = canonical_bytes({"id": str(row.pk), **row.body})
    headers = {
        "Content-Type": "application/json",
        EVENT: row.event,
        DELIVERY: str(row.pk),
        SIGNATURE: f"t={moment},v1={signature(secret_of(row.webhook), moment, body)}",
    }
    status = await post(row.webhook.url, body, headers)
    if not 200 <= status < 300:
        raise NotSent(f"http_{status}", permanent=status == 410)


async def post(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Return the status of the answer. Outside of any scope.

    Raises `NotSent`, permanent for an address inside our own network.
    """
    parts = urlsplit(url)
    try:
        address = await asyncio.to_thread(resolve_url, parts, allow_private=settings.WEBHOOKS_PRIVATE)
        return await asyncio.wait_for(_request(address, parts, body, headers), _TOTAL_SECONDS)
    except AddressRefused as no:
        raise NotSent(no.code, permanent=no.is_permanent) from None
    except Exception as error:  # noqa: BLE001 (a receiver fails in many ways)
        raise NotSent(type(error).__name__) from None


async def _request(address: str, parts: SplitResult, body: bytes, headers: dict[str, str]) -> int:
    """Call the resolved address under the original host name. The body of the answer is not read, however long."""
    headers = {**headers, "Host": parts.netloc}
    extensions = {"sni_hostname": parts.hostname}
    client = httpx2.AsyncClient(timeout=_STEP_SECONDS, follow_redirects=False, trust_env=False)
    async with client, client.stream("POST", address, content=body, headers=headers, extensions=extensions) as answer:
        return int(answer.status_code)


def signature(secret: bytes, moment: str, body: bytes) -> str:
    """The HMAC that a receiver computes again: over `moment.body`, so that a replayed webhook shows its age."""
    return hmac.new(secret, moment.encode() + b"." + body, hashlib.sha256).hexdigest()
