"""Requests of the REST API that were sent with an `Idempotency-Key`."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models

from kernel.tenancy import TenantModel


class IdempotentRequest(TenantModel):
    """A request and, once it was carried out, its answer. `digest` is of the caller, the address and the key; `answer`
    is sealed, and empty where it may not be kept. Without a `status` its outcome is not known."""

    digest = models.CharField(max_length=64)
    body_digest = models.CharField(max_length=64)
    status: models.PositiveSmallIntegerField[int | None, int | None] = models.PositiveSmallIntegerField(null=True)
    answer = models.BinaryField(default=bytes)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "digest"], name="idempotent_request_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "created_at"], name="idempotent_request_by_age")]
