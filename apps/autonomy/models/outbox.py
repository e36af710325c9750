"""Notices to members, and what is sent outside: webhooks and e-mails."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.autonomy.enums import Channel, OutboxState
from apps.bus.enums import SetAside
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Notification(TenantModel):
    """A notice in a member's console, or without `user` in every owner's: the record that they were told.

    It holds counts, ids and codes, no text of sessions. There is one for each occasion (`root`), about its newest
    session; `reason` is why that one did not end well, or what it waits for. About a trigger that was disabled: the
    trigger and the reason. About anything else that was set aside: its kind (`about`), one unread notice for each.
    `card_id`: the card on which the session's limit can be raised.
    """

    user = models.ForeignKey("tenants.User", on_delete=models.CASCADE, null=True, related_name="+")
    session = models.ForeignKey("autonomy.AutonomousSession", on_delete=models.PROTECT, null=True, related_name="+")
    root = models.ForeignKey("autonomy.AutonomousSession", on_delete=models.PROTECT, null=True, related_name="+")
    trigger = models.ForeignKey("autonomy.Trigger", on_delete=models.CASCADE, null=True, related_name="+")
    about = models.CharField(max_length=20, choices=SetAside.choices, blank=True, db_default="")
    reason = models.CharField(max_length=60, blank=True, db_default="")
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    counts: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    read_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "user"], name="autonomy_notice_once"),
            models.CheckConstraint(
                condition=Q(session__isnull=False, root__isnull=False) | Q(trigger__isnull=False) | ~Q(about=""),
                name="autonomy_notice_is_about_something",
            ),
            models.CheckConstraint(condition=Q(user__isnull=False) | ~Q(about=""), name="autonomy_notice_has_a_reader"),
            models.UniqueConstraint(
                fields=["tenant", "user", "about"],
                condition=Q(read_at=None) & ~Q(about=""),
                nulls_distinct=False,
                name="autonomy_set_aside_unread_once",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "user", "-created_at"], name="autonomy_notice_by_user")]


class Webhook(TenantModel):
    """An address to which a company's events are posted, signed with the sealed secret (Standard Webhooks).

    After a rotation the secret before signs as well until `previous_until`.
    """

    url = models.URLField(max_length=500)
    events: models.JSONField[list[str], list[str]] = models.JSONField(default=list, help_text=_("Empty: all"))
    sealed_secret = models.BinaryField()
    previous_secret: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True)
    previous_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]


class Outbox(TenantModel):
    """A webhook or email that is sent after its transaction commits: retried until it arrives, then never again."""

    channel = models.CharField(max_length=8, choices=Channel.choices)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, null=True, related_name="+")
    user = models.ForeignKey("tenants.User", on_delete=models.CASCADE, null=True, related_name="+")
    notice = models.ForeignKey(Notification, on_delete=models.CASCADE, null=True, related_name="+")
    event = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    body: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=OutboxState.choices, default=OutboxState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    sent_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = _("outgoing message")
        verbose_name_plural = _("outgoing messages")
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "key"], name="autonomy_outbox_once"),
            models.CheckConstraint(
                condition=Q(channel=Channel.WEBHOOK, webhook__isnull=False)
                | Q(channel=Channel.EMAIL, user__isnull=False)
                | Q(channel=Channel.EMAIL, notice__isnull=False),
                name="autonomy_outbox_has_a_receiver",
            ),
        ]
