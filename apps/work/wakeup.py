"""How does a worker learn that something waits? A poke after the commit; the rows on the bus are the truth.

A broker that is away costs seconds: the bus's sweep pokes again. It never fails or delays what was committed.
"""

from __future__ import annotations

import logging
from uuid import UUID

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

EXECUTE = "work.execute"
# Nobody waits for a broker that is away or does not answer: one try, no pause.
_PATIENCE_SECONDS = 2
_AT_ONCE = {
    "max_retries": 0,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
    "socket_timeout": _PATIENCE_SECONDS,
    "socket_connect_timeout": _PATIENCE_SECONDS,
}
_log = logging.getLogger(__name__)


def after_commit(tenant_id: UUID) -> None:
    transaction.on_commit(lambda: _poke(tenant_id), robust=True)


def _poke(tenant_id: UUID) -> None:
    try:
        with current_app.connection_for_write(transport_options=_AT_ONCE) as connection:
            current_app.send_task(EXECUTE, args=(str(tenant_id),), connection=connection, retry=False)
    except OperationalError:
        _log.warning("work_poke_lost tenant=%s", tenant_id)
