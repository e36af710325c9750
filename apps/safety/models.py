"""Agents, their policies and reports, and the holds on them.

An agent is a name under one principal (an API key or one of our chatbots): the name distinguishes agents, a block
applies to the principal (contract safety-loop 21). Codes and tokens are stored as hashes only. Written by `services`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.safety.enums import (
    ChallengeState,
    Decision,
    ExecutionStatus,
    HoldKind,
    HoldState,
    Mode,
    Stage,
    StepOutcome,
    Tier,
)
from apps.safety.schemas import Policy
from kernel.clock import now
from kernel.tenancy import TenantModel


class SafetyAgent(TenantModel):
    """An agent that has reported: its principal, and its name there, trimmed and in lower case."""

    principal = models.CharField(max_length=80)
    name = models.CharField(max_length=120)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "principal", "name"], name="safety_agent_once")
        ]

    def __str__(self) -> str:
        return self.name


class PolicyVersion(TenantModel):
    """A policy of one principal, or of all that have none of their own (principal ""). The highest number is active.

    Rows are never rewritten. `taken_back`: from this version on the common policy applies to the principal again.
    """

    principal = models.CharField(max_length=80, blank=True)
    number = models.PositiveIntegerField()
    content: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    taken_back = models.BooleanField(default=False)
    written_by = models.CharField(max_length=80)
    note = models.CharField(max_length=200, blank=True)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["principal", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "principal", "number"], name="safety_policy_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="safety_policy_counts"),
            models.CheckConstraint(
                condition=Q(taken_back=False) | (~Q(principal="") & Q(content={})), name="safety_policy_own_taken_back"
            ),
        ]

    @property
    def policy(self) -> Policy:
        return Policy.model_validate(self.content)


class Execution(TenantModel):
    """One run of an agent. `granted_at`: its step count when a person last renewed its step limit."""

    agent = models.ForeignKey(SafetyAgent, on_delete=models.PROTECT, related_name="executions")
    status = models.CharField(max_length=10, choices=ExecutionStatus.choices, default=ExecutionStatus.RUNNING)
    steps = models.PositiveIntegerField(default=0)
    granted_at = models.PositiveIntegerField(default=0)
    started_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    last_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    agent_id: UUID

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-last_at"], name="safety_execution_recent"),
            models.Index(
                fields=["agent", "-started_at"], condition=Q(status=ExecutionStatus.RUNNING), name="safety_running"
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(status=ExecutionStatus.RUNNING, finished_at=None)
                | (~Q(status=ExecutionStatus.RUNNING) & Q(finished_at__isnull=False)),
                name="safety_execution_ended_when_over",
            )
        ]


class Step(TenantModel):
    """One report and the answer to it. Append-only."""

    execution = models.ForeignKey(Execution, on_delete=models.PROTECT, related_name="reports")
    seq = models.PositiveIntegerField()
    hint = models.TextField()
    description = models.TextField(blank=True)
    outcome = models.CharField(max_length=8, choices=StepOutcome.choices, blank=True)
    mode = models.CharField(max_length=10, choices=Mode.choices)
    decision = models.CharField(max_length=5, choices=Decision.choices)
    stage = models.CharField(max_length=10, choices=Stage.choices, blank=True)
    tier = models.CharField(max_length=11, choices=Tier.choices, blank=True)
    score = models.PositiveSmallIntegerField(null=True)
    factors: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["execution", "-seq"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["execution", "seq"], name="safety_step_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "-created_at"], name="safety_step_recent")]


class Hold(TenantModel):
    """A hold on an agent: a pause of one execution, or a block of its principal.

    `digest`: hash of the action, so that an approval is for this one; `used_at`: when the approval was spent;
    `mailed_at`, `pushed_at`: when its code was e-mailed and its push sent; `proofs`: the newest passkey assertion for
    each operator action. Our own chatbots have no executions.
    """

    agent = models.ForeignKey(SafetyAgent, on_delete=models.PROTECT, related_name="holds")
    principal = models.CharField(max_length=80)
    execution = models.ForeignKey(Execution, on_delete=models.PROTECT, null=True, related_name="holds")
    kind = models.CharField(max_length=7, choices=HoldKind.choices)
    state = models.CharField(max_length=7, choices=HoldState.choices, default=HoldState.OPEN)
    stage = models.CharField(max_length=10, choices=Stage.choices)
    tier = models.CharField(max_length=11, choices=Tier.choices)
    hint = models.TextField()
    digest = models.CharField(max_length=64)
    reason = models.CharField(max_length=700)
    factors: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    challenge_seconds = models.PositiveIntegerField()
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=80, blank=True)
    used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    mailed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    pushed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    proofs: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)
    token_hashed = models.CharField(max_length=64, blank=True)
    token_expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    token_used_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    agent_id: UUID
    execution_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "principal"],
                condition=Q(kind=HoldKind.BLOCK, state=HoldState.OPEN),
                name="safety_one_block",
            ),
            models.UniqueConstraint(
                fields=["execution"],
                condition=Q(state=HoldState.OPEN) & ~Q(kind=HoldKind.BLOCK),
                name="safety_one_pause",
            ),
            models.CheckConstraint(
                condition=Q(state=HoldState.OPEN, ended_at=None)
                | (~Q(state=HoldState.OPEN) & Q(ended_at__isnull=False)),
                name="safety_hold_ended_when_over",
            ),
            models.CheckConstraint(
                condition=~Q(kind=HoldKind.BLOCK) | Q(state__in=[HoldState.OPEN, HoldState.LIFTED]),
                name="safety_block_ends_by_a_person",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "kind"], condition=Q(state=HoldState.OPEN), name="safety_hold_open"),
            models.Index(fields=["token_hashed"], condition=~Q(token_hashed=""), name="safety_hold_token"),
        ]


class StepWindow(TenantModel):
    """Number of steps that a principal reported since `started_at`, over all of its names and executions."""

    principal = models.CharField(max_length=80)
    steps = models.PositiveIntegerField(default=0)
    started_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "principal"], name="safety_step_window_once")
        ]


class Challenge(TenantModel):
    """A verification of a hold. Its code is created when an entitled person opens it; before that no code is valid."""

    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="challenges")
    state = models.CharField(max_length=10, choices=ChallengeState.choices, default=ChallengeState.PENDING)
    hashed = models.CharField(max_length=64, blank=True)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    shown_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    expires_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["hold"], condition=Q(state=ChallengeState.PENDING), name="safety_one_challenge"
            )
        ]

    def end(self, state: ChallengeState) -> None:
        self.state, self.ended_at = state, now()
        self.save(update_fields=["state", "ended_at"])


class FailedTries(TenantModel):
    """Recent wrong codes: one row for an agent, one for a caller."""

    key = models.CharField(max_length=120)
    failures = models.PositiveIntegerField(default=0)
    window_start: models.DateTimeField[datetime, datetime] = models.DateTimeField()
    locked_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    strikes = models.PositiveIntegerField(default=0)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "key"], name="safety_tries_once")]
