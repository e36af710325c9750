"""Celery application of beat: wakes each kind of worker, and loads neither Django nor anything of the database.

So a lost wake-up costs seconds. A wake-up that no worker took expires when the next one is sent. `celery beat` runs it
as a process, the trusted worker of `make run` in a thread (`silas_platform.worker`).
"""

from __future__ import annotations

from celery import Celery

from apps.bus.workers import Worker
from silas_platform.settings import broker, env

WAKE_SECONDS = 5.0

app = Celery("silas_platform.beat", fixups=[], set_as_current=False)
app.conf.update(
    broker_url=broker.url(),
    broker_transport_options=broker.options(),
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    beat_schedule={
        f"bus.drain.{worker.value}": {
            "task": "bus.drain",
            "args": [worker.value],
            "schedule": WAKE_SECONDS,
            "options": {"queue": worker.value, "expires": WAKE_SECONDS},
        }
        for worker in Worker
    },
    beat_schedule_filename=env.text("SILAS_VAR", "var") + "/celerybeat-schedule",
)
