"""How does a worker learn of a set-up, or of a connection to find out about? A poke after the commit; rows are the
truth, and a sweep pokes again."""

from __future__ import annotations

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.connections.models import Connection, SetupRun

HOLD, DISCOVER = "connections.hold", "connections.discover"


def poke(row: SetupRun | Connection) -> None:
    """A set-up is to be held, or a connection looked at for the first time."""
    what, where = HOLD if isinstance(row, SetupRun) else DISCOVER, (str(row.tenant_id), str(row.pk))
    transaction.on_commit(lambda: _send(what, where))


def _send(what: str, where: tuple[str, str]) -> None:
    """A broker that is away costs seconds: the sweep looks."""
    try:
        current_app.send_task(what, args=where, retry=False)
    except OperationalError:
        return
