"""The rows by which a run is governed: the run and its brakes, its calls, the money, and what an administrator set.

`GuardedRun.cost_total` is what was charged, `cost_reserved` what admitted calls may still cost; a budget counts both
for its present window. `SpendEntry` is the append-only ledger: a call's entries add up to what it has committed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.guard.enums import (
    CallState,
    HaltState,
    Intent,
    Origin,
    Pause,
    Period,
    Phase,
    RunStatus,
    SpendKind,
    TerminalReason,
)
from apps.guard.schemas import ApprovedCalls, Limits, RunRef
from apps.tenants.models import Deployment
from kernel.tenancy import TenantModel


def _money(**options: Any) -> models.DecimalField[Decimal, Decimal]:
    """US dollars to the ninth digit, so that a call far below a cent keeps its cost (contract autonomy A5)."""
    return models.DecimalField(max_digits=18, decimal_places=9, **options)


class GuardedRun(TenantModel):
    """What one chat scope, work attempt or autonomous session may do, and what it has used of it."""

    origin = models.CharField(max_length=16, choices=Origin.choices)
    owner_ref = models.UUIDField()
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, null=True, related_name="+")
    phase = models.CharField(max_length=16, choices=Phase.choices)
    status = models.CharField(max_length=16, choices=RunStatus.choices, default=RunStatus.RUNNING)
    halt_state = models.CharField(max_length=16, choices=HaltState.choices, default=HaltState.RUNNING)
    terminal_reason = models.CharField(max_length=20, choices=TerminalReason.choices, blank=True)
    allow = models.JSONField(null=True, blank=True)
    deny = models.JSONField(default=list, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    approval = models.JSONField(null=True, blank=True)
    seq = models.IntegerField(default=0)
    calls = models.IntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_total = _money(default=0)
    cost_reserved = _money(default=0)
    cost_cap_reached = models.BooleanField(default=False)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "owner_ref"], name="guard_run_by_owner")]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(cost_total__gte=0, cost_reserved__gte=0), name="guard_costs_positive"),
            models.CheckConstraint(
                condition=Q(status=RunStatus.RUNNING, ended_at__isnull=True)
                | (~Q(status=RunStatus.RUNNING) & Q(ended_at__isnull=False)),
                name="guard_run_ended_when_over",
            ),
        ]

    @property
    def ref(self) -> RunRef:
        return RunRef(self.tenant_id, self.pk)

    @property
    def frozen_limits(self) -> Limits:
        return Limits.model_validate(self.limits)

    @property
    def approved(self) -> ApprovedCalls | None:
        return None if self.approval is None else ApprovedCalls.model_validate(self.approval)


class ToolCall(TenantModel):
    """One call of a run. `effect_key` is unique: what carries an approval is begun once under it."""

    run = models.ForeignKey(GuardedRun, on_delete=models.PROTECT, related_name="tool_calls")
    seq = models.IntegerField()
    effect_key = models.CharField(max_length=240)
    intent = models.CharField(max_length=24, choices=Intent.choices)
    tool = models.CharField(max_length=120)
    args_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=CallState.choices)
    reserved = _money(default=0)
    charged = _money(default=0)
    error_code = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    deadline = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "effect_key"], name="guard_effect_once"),
            models.UniqueConstraint(fields=["run", "seq"], name="guard_call_seq_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "deadline"], condition=Q(state=CallState.ADMITTED), name="guard_call_open")
        ]


class SpendEntry(TenantModel):
    """One movement of money: a reservation, or a settlement that corrects it to what was charged. Never changed."""

    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="spend")
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=8, choices=SpendKind.choices)
    intent = models.CharField(max_length=24, choices=Intent.choices)
    model = models.CharField(max_length=120, blank=True)
    day = models.DateField()
    amount = _money()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "day"], name="guard_spend_by_day")]


class Budget(TenantModel):
    """What a tenant, or one of its deployments, may spend a day or a month, in the tenant's time zone."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    period = models.CharField(max_length=8, choices=Period.choices)
    limit_usd = _money()
    window_start = models.DateField(null=True, blank=True, editable=False)
    spent = _money(default=0, editable=False)
    reserved = _money(default=0, editable=False)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "deployment", "period"], nulls_distinct=False, name="guard_budget_once"
            ),
            models.CheckConstraint(condition=Q(limit_usd__gte=0), name="guard_budget_limit_positive"),
        ]


class SystemControl(TenantModel):
    """An administrator's pause, for the tenant or for one deployment."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    pause = models.CharField(max_length=20, choices=Pause.choices, default=Pause.NONE)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "deployment"], nulls_distinct=False, name="guard_control_once")
        ]
