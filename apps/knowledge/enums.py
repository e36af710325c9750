"""Kinds and states of submissions to the tenant's knowledge."""

from __future__ import annotations

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class IntakeKind(TextChoices):
    """What was submitted."""

    FILE = "file", _("File")
    TEXT = "text", _("Text")
    WEBSITE = "website", _("Website")
    PAGE = "page", _("Page")
    AGAIN = "again", _("Read again")


class IntakeState(TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Being read")
    DONE = "done", _("Read")
    FAILED = "failed", _("Not read")
