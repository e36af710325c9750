"""The worker's door to tool servers: look whether they still say what was accepted. Safe to run twice."""

from __future__ import annotations

from celery import shared_task

from apps.toolservers import watching


@shared_task(name="toolservers.watch")
def watch() -> None:
    watching.watch()
