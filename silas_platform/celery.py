"""How does background work start? Celery delivers wake-ups; the rows in `bus` are the truth."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.dev")

app = Celery("silas_platform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _log_like_web(**_: Any) -> None:
    """Celery would replace our handlers; with a receiver here it leaves Django's settings (SILAS_LOG) alone."""


@worker_init.connect
def _refuse_signing_key(**_: Any) -> None:
    """A worker must not be able to mint approvals (architecture: who can sign)."""
    from silas_platform.checks import refuse_signing_key

    refuse_signing_key()
