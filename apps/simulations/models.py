"""Suites of scenarios, their runs against a deployment, and the isolated copies they are run in (ADR 120)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.simulations.enums import ACTIVE, Ending, Origin, Outcome, Player, Reviewer, RunStatus
from apps.simulations.schemas import CHECKS, LINES, SAID, Check, Line, Overrides, Said
from kernel.tenancy import TenantModel


class SimulationSuite(TenantModel):
    """Scenarios of one deployment that are run together."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "deployment", "name"], name="simulation_suite_once")
        ]

    def __str__(self) -> str:
        return self.name


class Scenario(TenantModel):
    """A visitor: who they are, what they want, what only they know, and how success is judged.

    A script says the `lines`. A model plays the visitor in at most `most_turns` messages; `model` names it, and without
    a name the chatbot's planner model plays. Where there is none, the lines are said.
    """

    suite = models.ForeignKey(SimulationSuite, on_delete=models.CASCADE, related_name="scenarios")
    name = models.CharField(max_length=160)
    persona = models.TextField(blank=True)
    goal = models.TextField(blank=True)
    secrets = models.TextField(blank=True)
    player = models.CharField(max_length=8, choices=Player.choices, default=Player.SCRIPT)
    lines: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list)
    checks: models.JSONField[list[dict[str, object]], list[dict[str, object]]] = models.JSONField(default=list)
    model = models.CharField(max_length=120, blank=True)
    most_turns = models.PositiveSmallIntegerField(default=6)
    reviewer = models.CharField(max_length=8, choices=Reviewer.choices, default=Reviewer.NONE)
    origin = models.CharField(max_length=12, choices=Origin.choices, default=Origin.WRITTEN)
    origin_ref = models.CharField(max_length=160, blank=True)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    suite_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["suite", "name"], name="simulation_scenario_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def script(self) -> list[Line]:
        return LINES.validate_python(self.lines)

    @property
    def judged_by(self) -> list[Check]:
        return CHECKS.validate_python(self.checks)


class SimulationRun(TenantModel):
    """One run of a suite against a deployment, or against a draft of it (`overrides`).

    `snapshot` is the caller's name for exactly what was simulated, such as the hash of a release. `lacks` lists what
    the isolated copy could not take over. `passed` is None until the run has finished.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    suite = models.ForeignKey(SimulationSuite, on_delete=models.PROTECT, related_name="runs")
    overrides: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)
    snapshot = models.CharField(max_length=64, blank=True)
    status = models.CharField(max_length=8, choices=RunStatus.choices, default=RunStatus.QUEUED)
    reason = models.CharField(max_length=80, blank=True)
    passed: models.BooleanField[bool | None, bool | None] = models.BooleanField(null=True)
    budget_usd: models.DecimalField[Decimal | None, Decimal | None] = models.DecimalField(
        max_digits=12, decimal_places=6, null=True
    )
    lacks: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    compared_with = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    by = models.CharField(max_length=80)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())
    started_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    deployment_id: UUID
    suite_id: UUID
    compared_with_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            # The isolated copy of a deployment is in one state at a time.
            models.UniqueConstraint(
                fields=["deployment"], condition=Q(status=RunStatus.RUNNING), name="simulation_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(status__in=ACTIVE, finished_at__isnull=True, passed__isnull=True)
                | (~Q(status__in=ACTIVE) & Q(finished_at__isnull=False, passed__isnull=False)),
                name="simulation_ends_with_a_result",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "deployment", "-created_at"], name="simulation_run_by_age"),
        ]

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE

    @property
    def draft(self) -> Overrides:
        return Overrides.model_validate(self.overrides)


class SimulationResult(TenantModel):
    """What came of one scenario. `session_id` is a conversation of the isolated copy; `conversation` is its record.

    `player` is the model that played the visitor, empty for a script; `ending` is why that model stopped.
    """

    run = models.ForeignKey(SimulationRun, on_delete=models.CASCADE, related_name="results")
    scenario = models.ForeignKey(Scenario, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=160)
    place = models.PositiveIntegerField()
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.WAITING)
    failures: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    conversation: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list)
    session_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    player = models.CharField(max_length=120, blank=True)
    ending = models.CharField(max_length=16, choices=Ending.choices, blank=True)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=Decimal(0))
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    run_id: UUID
    scenario_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["run", "place"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "place"], name="simulation_result_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def said(self) -> list[Said]:
        return SAID.validate_python(self.conversation)


class SimulationCopy(TenantModel):
    """The isolated copy of a deployment's policy: a company of its own without members, accounts, webhooks or mail."""

    deployment = models.OneToOneField("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    copy_tenant_id: models.UUIDField[UUID, UUID] = models.UUIDField(unique=True)
    copy_deployment_id: models.UUIDField[UUID, UUID] = models.UUIDField(unique=True)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())
    refreshed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name_plural = "simulation copies"
