"""A conversation: the session with its access grant, its recorded entries, and each turn's progress.

A session's id is the scope id of everything said in it. `seq` is gap-free: only `chronicle.append` numbers entries,
under the session's row lock. `owner_epoch` rises with every handoff; a bot message is recorded only in the epoch it
began in.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.access.rules import PUBLIC, is_over
from apps.sessions import pseudonyms
from apps.sessions.enums import EntryKind, Owner, Sender, TurnStatus
from kernel.language import gettext_lazy as _
from kernel.taint import Taint
from kernel.tenancy import TenantModel


class ChatSession(TenantModel):
    """A visitor's conversation with one deployment."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    # What serves it (`apps.releases.served`); None for a test and while the deployment has no release.
    release = models.ForeignKey(
        "releases.Release", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    resume_hash = models.CharField(max_length=64, unique=True)
    locale = models.CharField(max_length=20, blank=True)
    # What the visitor wrote last, as far as a turn could tell; what is told about their work follows it.
    language = models.CharField(max_length=5, blank=True)
    owner = models.CharField(max_length=8, choices=Owner.choices, default=Owner.BOT)
    owner_epoch = models.PositiveIntegerField(default=0)
    owner_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    wanted_person_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    wanted_queue = models.CharField(max_length=80, blank=True)
    wanted_because = models.CharField(max_length=80, blank=True)
    seq = models.PositiveBigIntegerField(default=0)
    turns = models.PositiveIntegerField(default=0)
    run_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    preview = models.CharField(max_length=160, blank=True)
    last_sender = models.CharField(max_length=8, choices=Sender.choices, blank=True)
    # Up to which entry the visitor's window has shown the conversation.
    visitor_read_seq = models.PositiveBigIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField()
    last_active_at = models.DateTimeField()
    # A member tries the bot: no visitor, so in no list of visitors and in no figure.
    is_test = models.BooleanField(default=False, db_default=False)
    # When its words were forgotten (`apps.sessions.retention`); what was said later is kept until its own time.
    forgotten_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    # What its windows are laid out by (`apps.sessions.context_state`).
    focus: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)
    # The mood of the chatbot in this conversation (`apps.persona.services.move_mood`).
    mood: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict, db_default={})
    # The program or member who started it over the API; empty for a visitor.
    started_by = models.CharField(max_length=80, blank=True, default="", db_default="")
    # The channel by which its visitor is reached beside the widget, or instead of it; empty for the widget alone.
    channel = models.CharField(max_length=10, blank=True, default="", db_default="")
    # What the page around the widget says of its visitor. It is unproved: no gate and no model reads it.
    attributes: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)

    # The access grant (spec 5.6). `customer` is the tenant's own id of the verified person; the level hangs on it.
    # `verified_gates` says by gate since when it counts (`since`) and when no longer (`until`; null: with the level).
    # `last_customer` stays when the level has ended: another person whom a page names is not shown this conversation.
    level = models.CharField(max_length=40, default=PUBLIC)
    level_expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    verified_gates = models.JSONField(default=dict)
    customer = models.CharField(max_length=80, blank=True)
    customer_name = models.CharField(max_length=120, blank=True)
    last_customer = models.CharField(max_length=80, blank=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-last_active_at"], name="session_by_activity"),
            models.Index(fields=["tenant"], condition=Q(wanted_person_at__isnull=False), name="session_waiting"),
            models.Index(
                fields=["tenant", "last_customer"], condition=~Q(last_customer=""), name="session_by_customer"
            ),
            models.Index(
                fields=["tenant", "last_active_at"],
                condition=Q(forgotten_at=None) | Q(forgotten_at__lt=F("last_active_at")),
                name="session_unforgotten",
            ),
            models.Index(fields=["tenant", "created_at"], condition=Q(seq__gt=0), name="session_by_beginning"),
            models.Index(fields=["tenant"], condition=Q(is_test=True), name="session_of_a_test"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(level=PUBLIC) | ~Q(customer=""), name="session_level_needs_customer")
        ]

    @property
    def whose(self) -> str:
        """The customer whose conversation this is, or was last; "" before any: a visitor who passed one of two gates
        is not identified yet."""
        return self.last_customer if self.level == PUBLIC else self.customer

    def level_at(self, moment: datetime) -> str:
        """The level that counts at `moment`: public again once a raised one is over."""
        return PUBLIC if is_over(self.level_expires_at, moment) else self.level

    def __str__(self) -> str:
        return self.visitor_name

    @property
    def visitor_name(self) -> str:
        """What staff call the visitor: the name of a verified customer, else a made-up one."""
        return self.customer_name or pseudonyms.name_of(self.pk)


class ChronicleEntry(TenantModel):
    """One recorded frame of a conversation, in order."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="entries")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=24, choices=EntryKind.choices)
    sender = models.CharField(max_length=8, choices=Sender.choices)
    text = models.TextField(blank=True)
    payload = models.JSONField(default=dict)
    taint = models.CharField(max_length=8, choices=[(taint.value, taint.value) for taint in Taint])
    client_id = models.CharField(max_length=64, blank=True)
    turn = models.PositiveIntegerField(default=0)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("chronicle entries")
        ordering: ClassVar = ["session", "seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "seq"], name="chronicle_seq_once"),
            models.UniqueConstraint(
                fields=["session", "client_id"], condition=~Q(client_id=""), name="chronicle_client_id_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant", "created_at"], condition=Q(payload__has_key="citations"), name="chronicle_cited"
            )
        ]


class Turn(TenantModel):
    """One attempt to answer one message: how far it came and how it ended."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="+")
    message_seq = models.PositiveBigIntegerField()
    number = models.PositiveIntegerField()
    # The release that gave the answer.
    release = models.ForeignKey(
        "releases.Release", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    epoch = models.PositiveIntegerField()
    step = models.CharField(max_length=40)
    status = models.CharField(max_length=8, choices=TurnStatus.choices, default=TurnStatus.RUNNING)
    reason = models.CharField(max_length=80, blank=True)
    model_name = models.CharField(max_length=120, blank=True)
    # What the model saw, zone by zone, and what was left out: ids, counts and reasons (`Window.record`), never text.
    context: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)
    # What models read of the message, now and later, where a gate reworded it; None where it stands as written.
    read_as: models.TextField[str | None, str | None] = models.TextField(null=True)
    started_at = models.DateTimeField()
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["session", "message_seq"], name="turn_by_message"),
            models.Index(
                fields=["tenant", "started_at"],
                include=["status", "reason", "finished_at", "session"],
                name="turn_by_beginning",
            ),
        ]
