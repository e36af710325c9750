"""What happened, as programs are told of it: one row an event, numbered per company in the order of commits."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from kernel.tenancy import TenantModel


class EventHead(TenantModel):
    """The number of the company's last event, and of the last that retention deleted.

    An append holds the row's lock until the commit, so a reader who saw a number has seen all below it.
    """

    last_seq = models.PositiveBigIntegerField(default=0)
    deleted_seq = models.PositiveBigIntegerField(default=0, db_default=0)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="events_one_head")]


class Event(TenantModel):
    """Ids and states, never words: what was said is read from the conversation when the event is sent."""

    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=40)
    deployment_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    session_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    data: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["seq"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "seq"], name="events_event_seq_once")]
