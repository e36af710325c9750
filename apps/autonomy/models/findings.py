"""What sessions leave behind: findings, artifacts, proposals and precedents; and unanswered questions.

Each row of `Provenance` says which task, skills and session it comes from, so that all of one origin can be quarantined
(`quarantined_at`) or purged. What a session writes is external text until a person keeps it. `root` is the occasion's
first attempt: attempts that follow a lost worker write nothing twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.autonomy.enums import (
    ArtifactKind,
    ContextState,
    FindingState,
    PrecedentState,
    ProposalKind,
    ProposalState,
    Severity,
)
from kernel.language import gettext_lazy as _
from kernel.taint import Taint
from kernel.tenancy import TenantModel
from llm.enums import MemoryType

MOST_ARTIFACT_BYTES = 262_144


class Provenance(TenantModel):
    """The task, session and skills that a row comes from."""

    task = models.ForeignKey("autonomy.Task", on_delete=models.PROTECT, related_name="+")
    session = models.ForeignKey("autonomy.AutonomousSession", on_delete=models.PROTECT, related_name="+")
    root = models.ForeignKey("autonomy.AutonomousSession", on_delete=models.PROTECT, related_name="+")
    skills: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    taint = models.CharField(
        max_length=8, choices=[(each.value, each.value) for each in Taint], default=Taint.EXTERNAL.value
    )
    created_at = models.DateTimeField(db_default=Now())
    quarantined_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        abstract = True

    task_id: UUID
    session_id: UUID
    root_id: UUID


class Finding(Provenance):
    """Something that a session found out. `sources` are passages of documents.

    `key` says what it is about, the same in every run of its task, which reports it once; empty for a finding that has
    no such identity. `gone_at`: when a later run no longer saw it; should it return, it is a new row with the same key.
    `resolved_at`: when a person dealt with it.
    """

    title = models.CharField(max_length=300)
    content = models.TextField(blank=True)
    severity = models.CharField(max_length=8, choices=Severity.choices, default=Severity.INFO)
    phase = models.CharField(max_length=16)
    digest = models.CharField(max_length=64)
    key = models.CharField(max_length=64, blank=True, default="", db_default="")
    sources: models.JSONField[list[object], list[object]] = models.JSONField(default=list)
    gone_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    resolved_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    resolved_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta(Provenance.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["root", "digest"], name="autonomy_finding_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "-created_at"], name="autonomy_finding_by_age")]

    @property
    def state(self) -> FindingState:
        if self.gone_at is not None:
            return FindingState.GONE
        return FindingState.OPEN if self.resolved_at is None else FindingState.RESOLVED

    @property
    def is_open(self) -> bool:
        return self.state == FindingState.OPEN


class Artifact(Provenance):
    """A document, table or text that a session handed over whole. `table` holds `columns` and `rows` of a table."""

    title = models.CharField(max_length=300)
    kind = models.CharField(max_length=10, choices=ArtifactKind.choices)
    content = models.TextField(blank=True)
    table: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True, blank=True)
    size = models.PositiveIntegerField(help_text=_("Bytes"))
    digest = models.CharField(max_length=64)

    class Meta(Provenance.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "digest"], name="autonomy_artifact_once"),
            models.CheckConstraint(condition=Q(size__lte=MOST_ARTIFACT_BYTES), name="autonomy_artifact_size"),
            models.CheckConstraint(
                condition=Q(kind=ArtifactKind.TABLE, table__isnull=False, content="")
                | (~Q(kind=ArtifactKind.TABLE) & Q(table__isnull=True)),
                name="autonomy_artifact_is_one_thing",
            ),
        ]


class Precedent(Provenance):
    """A pattern that sessions observed, and how often.

    At most one row of a kind and wording is not dismissed. `task`, `session` and `root` are those that saw it last.
    """

    pattern_kind = models.CharField(max_length=40)
    summary = models.CharField(max_length=300)
    digest = models.CharField(max_length=64)
    count = models.PositiveIntegerField(default=1)
    evidence: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=PrecedentState.choices, default=PrecedentState.OPEN)
    updated_at = models.DateTimeField(db_default=Now())
    dismissed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(Provenance.Meta):
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "pattern_kind", "digest"],
                condition=~Q(state=PrecedentState.DISMISSED),
                name="autonomy_precedent_once",
            ),
            models.CheckConstraint(condition=Q(count__gte=1), name="autonomy_precedent_seen"),
        ]


class MemoryProposal(Provenance):
    """Something worth keeping if a person agrees: a memory, a document or a preference.

    `number` counts within its session's first attempt; `target` is the collection that it would be added to.
    """

    kind = models.CharField(max_length=12, choices=ProposalKind.choices)
    title = models.CharField(max_length=300)
    content = models.TextField()
    memory_type = models.CharField(max_length=12, choices=[(each.value, each.value) for each in MemoryType])
    target = models.CharField(max_length=80, blank=True)
    evidence: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)
    digest = models.CharField(max_length=64)
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=12, choices=ProposalState.choices, default=ProposalState.PROPOSED)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, blank=True)
    result_ref = models.CharField(max_length=80, blank=True, help_text=_("Where it is stored: memory:… or document:…"))
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    kept_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    dismissed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    deleted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(Provenance.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["root", "digest"], name="autonomy_proposal_once"),
            models.UniqueConstraint(fields=["root", "number"], name="autonomy_proposal_number"),
            models.CheckConstraint(condition=~Q(content=""), name="autonomy_proposal_says_something"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "state", "-created_at"], name="autonomy_proposal_open")]


class ContextProposal(TenantModel):
    """A rule for a deployment, which the server words from a precedent.

    It is appended to the persona once, and later decisions do not change that.
    """

    precedent = models.ForeignKey(Precedent, on_delete=models.PROTECT, related_name="+")
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    text = models.CharField(max_length=500)
    state = models.CharField(max_length=12, choices=ContextState.choices, default=ContextState.PROPOSED)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, blank=True)
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    accepted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    rejected_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["precedent", "deployment"], name="autonomy_context_proposal_once")
        ]


class OpenQuestion(TenantModel):
    """A visitor's question for which no document had an answer, scrubbed, with how often and when it was asked.

    Written by web processes, because workers have no right to read conversations.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=600)
    digest = models.CharField(max_length=64)
    level = models.CharField(max_length=40, default="public")
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField(db_default=Now())
    last_at = models.DateTimeField(db_default=Now())
    reviewed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-last_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "digest"], name="autonomy_question_once"),
            models.CheckConstraint(condition=Q(count__gte=1), name="autonomy_question_asked"),
        ]
