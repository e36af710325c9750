"""Models of runs, calls, spending and its limits, and an administrator's pauses.

`GuardedRun.cost_total` is what was charged, `cost_reserved` what admitted calls may still cost; a budget counts both
for its current window. `SpendEntry` is the append-only ledger: a call's entries add up to what it has committed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, ClassVar
from uuid import uuid4

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from apps.guard.enums import (
    CallState,
    HaltState,
    Holder,
    Intent,
    OnLimit,
    Origin,
    Pause,
    Period,
    Phase,
    RunStatus,
    SpendKind,
    TerminalReason,
)
from apps.guard.rules import holder_of
from apps.guard.schemas import ZERO, ApprovedCalls, BudgetFacts, Limits, RunRef
from apps.tenants.models import Deployment
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


def _money(**options: Any) -> models.DecimalField[Decimal, Decimal]:
    # US dollars to the ninth digit, because a call may cost far less than a cent (contract autonomy A5).
    return models.DecimalField(max_digits=18, decimal_places=9, **options)


class GuardedRun(TenantModel):
    """The permissions and limits of one chat scope, work attempt or autonomous session, and what it has used."""

    origin = models.CharField(max_length=16, choices=Origin.choices)
    owner_ref = models.UUIDField()
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, null=True, related_name="+")
    phase = models.CharField(max_length=16, choices=Phase.choices)
    critical = models.BooleanField(default=True, db_default=True)
    task_ref = models.UUIDField(null=True, blank=True)
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
    # How many contents its models read in which a gate found instructions to the assistant, and the last turn that did.
    content_marks = models.PositiveIntegerField(default=0, db_default=0)
    marked_turn = models.UUIDField(null=True, blank=True)
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["tenant", "owner_ref"], name="guard_run_by_owner"),
            models.Index(
                fields=["tenant", "-started_at"], condition=Q(status=RunStatus.RUNNING), name="guard_run_running"
            ),
        ]
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
        """Return the reference for the caller that opened the run, with the approval that it passed. Do not use this on
        a row that was read: its approval is not trusted."""
        return RunRef(self.tenant_id, self.pk, approval=self.approved)

    @property
    def frozen_limits(self) -> Limits:
        return Limits.model_validate(self.limits)

    @property
    def approved(self) -> ApprovedCalls | None:
        return None if self.approval is None else ApprovedCalls.model_validate(self.approval)


class ToolCall(TenantModel):
    """One call of a run.

    `effect_key` is unique, so that an approved call starts only once. `measured`: a model run whose provider counted
    the tokens; later estimates use it. `tokens_reserved` are the model tokens that it may use at most, which count
    towards the run's limit until it is settled."""

    run = models.ForeignKey(GuardedRun, on_delete=models.PROTECT, related_name="tool_calls")
    seq = models.IntegerField()
    effect_key = models.CharField(max_length=240)
    intent = models.CharField(max_length=24, choices=Intent.choices)
    tool = models.CharField(max_length=120)
    model = models.CharField(max_length=120, blank=True, db_default="")
    args_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=CallState.choices)
    reserved = _money(default=0)
    charged = _money(default=0)
    tokens_reserved = models.BigIntegerField(default=0, db_default=0)
    measured = models.BooleanField(default=False, db_default=False)
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
            models.Index(
                fields=["deadline"],
                condition=Q(state=CallState.ADMITTED),
                include=["tenant"],
                name="guard_call_overdue",
            ),
            models.Index(
                fields=["tenant", "model", "tool", "-settled_at"],
                condition=Q(measured=True),
                include=["charged"],
                name="guard_call_measured",
            ),
        ]


# Partitioned by month. Only this table can be: PostgreSQL wants the month in every unique constraint, and calls, audit
# entries, the chronicle and bus messages have keys that hold over all months (docs/development/rooms.md).
class SpendEntry(TenantModel):
    """One movement of money: a reservation, or a settlement that corrects it to the charge. Never changed."""

    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="spend")
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=8, choices=SpendKind.choices)
    intent = models.CharField(max_length=24, choices=Intent.choices)
    model = models.CharField(max_length=120, blank=True)
    purpose = models.CharField(max_length=120, blank=True, db_default="")
    day = models.DateField()
    amount = _money()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "day"], name="guard_spend_by_day")]


class Budget(TenantModel):
    """What a tenant, one of its deployments, one visitor or one task may spend a day or a month, in the tenant's time
    zone.

    `ref` is the id of the holder, by which a run finds and locks the budgets that it spends from. `limit_usd` is empty
    for a visitor, whose limit is in `SpendingPolicy`. `alerted` is the highest threshold in percent that was alerted in
    this window, `paused_in` the window whose reached limit pauses.
    """

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    visitor_ref = models.UUIDField(null=True, blank=True)
    task_ref = models.UUIDField(null=True, blank=True)
    ref: models.GeneratedField = models.GeneratedField(
        expression=Coalesce("visitor_ref", "task_ref", "deployment_id", "tenant_id"),
        output_field=models.UUIDField(),
        db_persist=True,
    )
    period = models.CharField(max_length=8, choices=Period.choices)
    limit_usd = _money(null=True)
    window_start = models.DateField(null=True, blank=True, editable=False)
    spent = _money(default=0, editable=False)
    reserved = _money(default=0, editable=False)
    alerted = models.SmallIntegerField(default=0, db_default=0, editable=False)
    paused_in = models.DateField(null=True, blank=True, editable=False)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "ref", "period"], name="guard_budget_once"),
            models.CheckConstraint(condition=Q(limit_usd__gte=0), name="guard_budget_limit_positive"),
            models.CheckConstraint(
                condition=Q(limit_usd__isnull=False) | Q(visitor_ref__isnull=False), name="guard_budget_has_limit"
            ),
            models.CheckConstraint(
                condition=Q(visitor_ref=None, task_ref=None)
                | Q(visitor_ref=None, deployment=None)
                | Q(task_ref=None, deployment=None),
                name="guard_budget_of_one",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant"], condition=Q(paused_in__isnull=False), name="guard_budget_paused")
        ]

    @property
    def holder(self) -> Holder:
        return holder_of(self.deployment_id, self.visitor_ref, self.task_ref)

    def __str__(self) -> str:
        limit = "" if self.limit_usd is None else f": ${self.limit_usd:.2f}"
        return f"{Holder(self.holder).label}, a {Period(self.period).label.lower()}{limit}"

    def in_window(self, window: date, visitor_limit: Decimal | None = None) -> BudgetFacts:
        """Return the budget as of this window, with nothing spent if it is not the one that has begun."""
        begun = self.window_start == window
        return BudgetFacts(
            budget_id=self.pk,
            holder=self.holder,
            ref=self.ref,
            window=window,
            period=self.period,
            limit=visitor_limit if self.limit_usd is None else self.limit_usd,
            spent=self.spent if begun else ZERO,
            reserved=self.reserved if begun else ZERO,
            alerted=self.alerted if begun else 0,
            paused_in=self.paused_in,
        )


class PlatformBudget(models.Model):
    """What all tenants of the installation may spend together, set by its operator, in the installation's time zone.

    It belongs to no tenant. Only a platform scope sees it, and two database functions, which tell a tenant's
    transaction whether there is room and nothing else (`sql.platform_budgets`)."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    period = models.CharField(max_length=8, choices=Period.choices, unique=True)
    limit_usd = _money()
    window_start = models.DateField(null=True, blank=True, editable=False)
    spent = _money(default=0, editable=False)
    reserved = _money(default=0, editable=False)
    alerted = models.SmallIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(limit_usd__gte=0), name="guard_platform_limit_positive")
        ]

    def __str__(self) -> str:
        return f"The installation, a {Period(self.period).label.lower()}: ${self.limit_usd:.2f}"


class SpendingPolicy(TenantModel):
    """A tenant's settings for all spending; without a row the defaults apply. `default_input` and `default_output` are
    the price per million model tokens of a model whose price is unknown."""

    on_limit = models.CharField(max_length=20, choices=OnLimit.choices, default=OnLimit.PAUSE_ALL)
    visitor_daily_usd = _money(null=True, blank=True)
    default_input = _money(null=True, blank=True)
    default_output = _money(null=True, blank=True)

    class Meta(TenantModel.Meta):
        verbose_name = _("spending policy")
        verbose_name_plural = _("spending policies")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="guard_policy_once"),
            models.CheckConstraint(condition=Q(visitor_daily_usd__gte=0), name="guard_policy_visitor_positive"),
            models.CheckConstraint(
                condition=Q(default_input=None, default_output=None)
                | (Q(default_input__gte=0, default_output__gte=0) & ~Q(default_input=None) & ~Q(default_output=None)),
                name="guard_policy_default_whole",
                violation_error_message=_("A default price needs both: input and output, 0 or more."),
            ),
        ]

    def __str__(self) -> str:
        return "Spending policy"


class ModelPrice(TenantModel):
    """A tenant's own price of a model in US dollars per million model tokens, where the public list is wrong or has
    none."""

    model = models.CharField(
        max_length=120,
        validators=[RegexValidator(r"^(?!builtin:|ollama:)[a-z0-9-]+:\S+$", "provider:model, of a model that costs")],
    )
    input_per_million = _money()
    output_per_million = _money()
    cache_read_per_million = _money(null=True, blank=True)
    cache_write_per_million = _money(null=True, blank=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "model"], name="guard_price_once"),
            models.CheckConstraint(
                condition=Q(input_per_million__gte=0, output_per_million__gte=0)
                & (Q(cache_read_per_million=None) | Q(cache_read_per_million__gte=0))
                & (Q(cache_write_per_million=None) | Q(cache_write_per_million__gte=0)),
                name="guard_price_positive",
                violation_error_message=_("A price is 0 or more."),
            ),
        ]

    def __str__(self) -> str:
        return self.model


class SystemControl(TenantModel):
    """An administrator's pause, for the tenant or for one deployment."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    pause = models.CharField(max_length=20, choices=Pause.choices, default=Pause.NONE)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "deployment"], nulls_distinct=False, name="guard_control_once")
        ]
