"""Kinds and states of submissions to the tenant's knowledge, of its sources, and of gaps in it."""

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
    SOURCE = "source", _("Source")


class SourceKind(TextChoices):
    """Where the documents of a source are."""

    WEBSITE = "website", _("Website")
    FOLDER = "folder", _("Folder")
    S3 = "s3", _("S3 bucket")
    NOTION = "notion", _("Notion")
    CONFLUENCE = "confluence", _("Confluence")
    ZENDESK = "zendesk", _("Zendesk help center")
    GOOGLE_DRIVE = "google_drive", _("Google Drive")


# The kinds that are read without an account.
WITHOUT_ACCOUNT = (SourceKind.WEBSITE, SourceKind.FOLDER)


class IntakeState(TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Being read")
    DONE = "done", _("Read")
    FAILED = "failed", _("Not read")


class GapReason(TextChoices):
    """Why a visitor's question counts as a gap in the knowledge."""

    UNANSWERED = "unanswered", _("Not answered")
    BADLY_RATED = "badly_rated", _("Badly rated")


class GapStatus(TextChoices):
    """What has become of a gap. `drafted`: an answer waits for approval."""

    OPEN = "open", _("Open")
    DRAFTED = "drafted", _("Waiting for approval")
    ANSWERED = "answered", _("Answered")
    DISMISSED = "dismissed", _("Dismissed")
