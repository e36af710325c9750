"""Requests to the trusted worker for approved changes of documents."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from apps.work.enums import EffectState
from kernel.tenancy import TenantModel


class KnowledgeEffect(TenantModel):
    """One document change, identified by work item and the digest of its call; carried out once. The row only requests
    and authorizes nothing: what to change is read from the item's approved plan."""

    work_item = models.ForeignKey("work.WorkItem", on_delete=models.PROTECT, related_name="+")
    call_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=EffectState.choices, default=EffectState.ASKED)
    answer: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    work_item_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["work_item", "call_digest"], name="knowledge_effect_once")
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.call_digest[:8]}"
