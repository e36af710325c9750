"""Post webhooks, and anything else that leaves by HTTP to an address that a customer chose.

A webhook is signed: HMAC-SHA256 over its time and body. An address inside our own network is refused by its text when
it is saved, and by what its name resolves to each time something is sent (`kernel.http.client`). Only the status of an
answer is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from datetime import datetime

from django.conf import settings

from apps.autonomy.models import Outbox
from apps.autonomy.services.webhooks import secret_of
from kernel.canonical import canonical_bytes
from kernel.http.client import open_client
from kernel.http.resolver import RequestRefused

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
    client = open_client(allow_private=settings.WEBHOOKS_PRIVATE, max_bytes=0, step_seconds=_STEP_SECONDS)
    try:
        async with (
            asyncio.timeout(_TOTAL_SECONDS),
            client,
            client.stream("POST", url, content=body, headers=headers) as answer,
        ):
            return int(answer.status_code)
    except RequestRefused as no:
        raise NotSent(no.code, permanent=no.is_permanent) from None
    except Exception as error:  # noqa: BLE001 (a receiver fails in many ways)
        raise NotSent(type(error).__name__) from None


def signature(secret: bytes, moment: str, body: bytes) -> str:
    """The HMAC that a receiver computes again: over `moment.body`, so that a replayed webhook shows its age."""
    return hmac.new(secret, moment.encode() + b"." + body, hashlib.sha256).hexdigest()
