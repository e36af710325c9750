"""Tables of drafts: skills that are being written here, and their revisions. Used by `maker`."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from kernel.tenancy import TenantModel


class SkillDraft(TenantModel):
    """A skill that is being written, with the wish in the requester's words. `version`: what was proposed of it
    last."""

    name = models.CharField(max_length=64)
    wish = models.TextField(max_length=4000)
    revision = models.PositiveIntegerField(default=1)
    by = models.CharField(max_length=60)
    version = models.ForeignKey("skills.SkillVersion", on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    updated_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    version_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-updated_at"]

    def __str__(self) -> str:
        return self.name


class DraftRevision(TenantModel):
    """One state of a draft: its files as texts, what was asked for, who wrote it (a model's name, or `person`), and the
    result of its tests. `problems` are what an installation would refuse."""

    draft = models.ForeignKey(SkillDraft, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    words = models.TextField(max_length=4000, blank=True)
    files: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField()
    written_by = models.CharField(max_length=120)
    problems: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    tested: models.JSONField[dict[str, object] | None, dict[str, object] | None] = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    draft_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["draft", "number"], name="skill_revision_once")]
