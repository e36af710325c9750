"""How does a worker learn of a set-up? A poke after the commit; rows are the truth, and a sweep pokes again."""

from __future__ import annotations

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.connections.models import SetupRun

HOLD = "connections.hold"


def poke(setup: SetupRun) -> None:
    where = (str(setup.tenant_id), str(setup.pk))
    transaction.on_commit(lambda: _send(where))


def _send(where: tuple[str, str]) -> None:
    """A broker that is away costs seconds: the sweep looks."""
    try:
        current_app.send_task(HOLD, args=where, retry=False)
    except OperationalError:
        return
