"""Post webhooks, and anything else that leaves by HTTP to an address that a customer chose.

A webhook is signed as Standard Webhooks says: HMAC-SHA256 over its id, time and body. An address inside our own network
is refused by its text when it is saved, and by what its name resolves to each time something is sent
(`kernel.http.client`). Only the status of an answer is read.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings

from apps.autonomy.models import Outbox
from apps.autonomy.services.webhooks import signing_keys
from kernel.canonical import canonical_bytes
from kernel.http.client import open_client
from kernel.http.resolver import RequestRefused

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
# Seconds for each step, and for the whole request: a receiver that answers byte by byte must not block the worker.
_STEP_SECONDS, _TOTAL_SECONDS = 5.0, 10.0


class NotSent(Exception):
    """A delivery failed. `permanent`: trying again cannot help. `until`: it is not due before that moment."""

    def __init__(self, code: str, *, permanent: bool = False, until: datetime | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.permanent = permanent
        self.until = until


async def post_row(row: Outbox, content: Mapping[str, Any] | None) -> None:
    """Post one webhook row with its event's content; None for an event that is no longer kept.

    Raises `NotSent`, which is permanent for such an event and for 410 Gone.
    """
    assert row.webhook is not None
    if content is None:
        raise NotSent("event_gone", permanent=True)
    moment = str(int(time.time()))
    body = canonical_bytes(content)
    headers = {
        "Content-Type": "application/json",
        ID: content["id"],
        TIMESTAMP: moment,
        SIGNATURE: " ".join(signature(key, content["id"], moment, body) for key in signing_keys(row.webhook)),
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


def signature(key: bytes, identifier: str, moment: str, body: bytes) -> str:
    """What a receiver computes again (Standard Webhooks 1.0): over `id.timestamp.body`."""
    signed = f"{identifier}.{moment}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
