"""The worker's door to this room: one poke carries out what is owed to a tenant's executor queue. Safe to run twice."""

from __future__ import annotations

import asyncio
import os
import socket
from uuid import UUID

from celery import shared_task

from apps.work import executor


@shared_task(name="work.execute")
def execute(tenant_id: str) -> None:
    consumer = f"work@{socket.gethostname()}:{os.getpid()}"
    asyncio.run(executor.drain(UUID(tenant_id), consumer=consumer))
