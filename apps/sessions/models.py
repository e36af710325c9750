"""One conversation, one turn at a time: the session with its access grant, what was said, and each turn's progress.

A session's id is the scope id of everything said in it. `seq` is gap-free: only `chronicle.append` numbers entries,
under the session's row lock. `owner_epoch` rises with every handoff; a bot message is recorded only in the epoch it
began in.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.sessions.enums import EntryKind, Owner, Sender, TurnStatus
from kernel.taint import Taint
from kernel.tenancy import TenantModel

PUBLIC = "public"


class ChatSession(TenantModel):
    """A visitor's conversation with one deployment."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    resume_hash = models.CharField(max_length=64, unique=True)
    locale = models.CharField(max_length=20, blank=True)
    owner = models.CharField(max_length=8, choices=Owner.choices, default=Owner.BOT)
    owner_epoch = models.PositiveIntegerField(default=0)
    owner_user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    wanted_person_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    seq = models.PositiveBigIntegerField(default=0)
    turns = models.PositiveIntegerField(default=0)
    run_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    preview = models.CharField(max_length=160, blank=True)
    last_sender = models.CharField(max_length=8, choices=Sender.choices, blank=True)
    created_at = models.DateTimeField()
    last_active_at = models.DateTimeField()

    # The access grant (spec 5.6). `customer` is the tenant's own id of whoever was verified; the level hangs on it.
    level = models.CharField(max_length=40, default=PUBLIC)
    level_expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    verified_gates = models.JSONField(default=list)
    customer = models.CharField(max_length=80, blank=True)
    customer_name = models.CharField(max_length=120, blank=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "-last_active_at"], name="session_by_activity")]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(level=PUBLIC) | ~Q(customer=""), name="session_level_needs_customer")
        ]

    @property
    def visitor_name(self) -> str:
        return self.customer_name or f"Visitor {self.pk.hex[:4].upper()}"


class ChronicleEntry(TenantModel):
    """One recorded frame of a conversation, in order."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="entries")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10, choices=EntryKind.choices)
    sender = models.CharField(max_length=8, choices=Sender.choices)
    text = models.TextField(blank=True)
    payload = models.JSONField(default=dict)
    taint = models.CharField(max_length=8, choices=[(taint.value, taint.value) for taint in Taint])
    client_id = models.CharField(max_length=64, blank=True)
    turn = models.PositiveIntegerField(default=0)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["session", "seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "seq"], name="chronicle_seq_once"),
            models.UniqueConstraint(
                fields=["session", "client_id"], condition=~Q(client_id=""), name="chronicle_client_id_once"
            ),
        ]


class Turn(TenantModel):
    """One attempt to answer one message: how far it came and how it ended."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="+")
    message_seq = models.PositiveBigIntegerField()
    number = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    step = models.CharField(max_length=40)
    status = models.CharField(max_length=8, choices=TurnStatus.choices, default=TurnStatus.RUNNING)
    reason = models.CharField(max_length=80, blank=True)
    model_name = models.CharField(max_length=120, blank=True)
    started_at = models.DateTimeField()
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["session", "-number"], name="turn_by_session")]
