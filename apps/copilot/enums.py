"""What staff can be helped with, and how a request for it ended. Values are stored: add some, never change any."""

from __future__ import annotations

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class AssistanceKind(TextChoices):
    SUGGEST = "suggest", _("Suggest a reply")
    SHORTER = "shorter", _("Make it shorter")
    FRIENDLIER = "friendlier", _("Make it friendlier")
    FORMAL = "formal", _("Make it more formal")
    SPELLING = "spelling", _("Fix spelling and grammar")
    TRANSLATE_REPLY = "translate_reply", _("Translate to the customer's language")
    TRANSLATE_MESSAGE = "translate_message", _("Translate the customer's last message")
    SUMMARY = "summary", _("Summarize the conversation")
    BOT_PREVIEW = "bot_preview", _("Show what the bot would do")
    FILL_FORM = "fill_form", _("Fill in a form")


# They change a draft, which the request has to hold.
REWRITES = (
    AssistanceKind.SHORTER,
    AssistanceKind.FRIENDLIER,
    AssistanceKind.FORMAL,
    AssistanceKind.SPELLING,
    AssistanceKind.TRANSLATE_REPLY,
)


class AssistanceStatus(TextChoices):
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    CANCELLED = "cancelled", _("Cancelled")
    REFUSED = "refused", _("Refused")
    FAILED = "failed", _("Failed")
