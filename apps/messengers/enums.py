"""Enumerations of the channels beside the widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class ChannelKind(TextChoices):
    EMAIL = "email", _("Email")
    TELEGRAM = "telegram", _("Telegram")
    WHATSAPP = "whatsapp", _("WhatsApp")
    SLACK = "slack", _("Slack")
    TEAMS = "teams", _("Microsoft Teams")
    SMS = "sms", _("SMS")


def channel_kinds() -> list[tuple[str, StrOrPromise]]:
    """A field's choices; by name in migrations, so that another channel needs none."""
    return [(kind.value, kind.label) for kind in ChannelKind]


class Direction(TextChoices):
    IN = "in", _("Received")
    OUT = "out", _("Sent")


class MessageState(TextChoices):
    """`SENDING`: the provider may have it; a crash leaves it there (`delivery`). `IGNORED`: received, and put in no
    conversation, for the reason in `problem`."""

    WAITING = "waiting", _("Waiting")
    SENDING = "sending", _("Sending")
    SENT = "sent", _("Sent")
    DELIVERED = "delivered", _("Delivered")
    READ = "read", _("Read")
    FAILED = "failed", _("Failed")
    RECEIVED = "received", _("Received")
    IGNORED = "ignored", _("Ignored")


class NoticeState(TextChoices):
    """Of a card's message to an approver."""

    WAITING = "waiting", _("Waiting")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")
