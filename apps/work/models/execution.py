"""How is it going? What changes around a work item while it runs: its course, its calls, its place in the pool, and
the planner's questions about it. What was promised stands in `models`.

The rows are the state: a process that dies holds nothing that is not here. Written by `apps.work.services` only.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.work.budgets import BudgetUsed
from apps.work.enums import PlanningState, ResearchState, SlotKind, Waiting
from apps.work.models.items import no_usage
from kernel.tenancy import TenantModel


class Course(TenantModel):
    """Where a work item stands between its attempts. `wait` counts the waits, so that an answer to an earlier one is
    known as late."""

    work_item = models.OneToOneField("work.WorkItem", on_delete=models.PROTECT, related_name="course")
    granted = models.JSONField(default=list, help_text="The tools that the customer's level allowed when it was asked")
    deliveries = models.PositiveIntegerField(default=0, help_text="How often it was given back to the executor")
    waiting_for = models.CharField(max_length=32, choices=Waiting.choices, blank=True)
    waiting_until = models.DateTimeField(null=True, help_text="When the wait ends without an answer")
    guidance = models.TextField(blank=True, help_text="What the planner advised for the next attempt; untrusted")
    replaces = models.ForeignKey("work.WorkItem", on_delete=models.PROTECT, null=True, related_name="replaced_by")
    depth = models.PositiveSmallIntegerField(default=0, help_text="How many plans were tried before this one")
    plan_run_id = models.UUIDField(null=True, help_text="The guarded run that pays for the planner's help")
    plan_used = models.JSONField(default=no_usage, help_text="What the planner's help has cost")
    cancelled_by = models.CharField(max_length=80, blank=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(waiting_for="", waiting_until__isnull=True)
                | (~Q(waiting_for="") & Q(waiting_until__isnull=False)),
                name="course_wait_has_an_end",
            )
        ]

    def __str__(self) -> str:
        return self.waiting_for or "under way"

    @property
    def used(self) -> BudgetUsed:
        return BudgetUsed.model_validate(self.plan_used)


class LedgerEntry(TenantModel):
    """One call of an attempt as it really went (contract silas 9, ExecutionResult). What took effect is written in the
    very transaction that settles it, so a worker that dies afterwards loses nothing of it."""

    attempt = models.ForeignKey("work.Attempt", on_delete=models.PROTECT, related_name="ledger")
    call_id = models.UUIDField(null=True, help_text="The guard's own row of the call, if it was made")
    tool = models.CharField(max_length=120)
    args_digest = models.CharField(max_length=64)
    success = models.BooleanField()
    value = models.JSONField(default=dict, help_text="What the tool returned; untrusted")
    left = models.JSONField(
        default=list, help_text="The records that it changed, at the revision at which it left them"
    )
    error = models.CharField(max_length=60, blank=True)
    cost_usd = models.DecimalField(max_digits=18, decimal_places=9, default=0)
    duration_seconds = models.FloatField(default=0)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["call_id"], condition=Q(call_id__isnull=False), name="ledger_one_entry_a_call"
            )
        ]

    def __str__(self) -> str:
        return self.tool


class Artifact(TenantModel):
    """A file that a successful call of an attempt really left (spec 5.2.1 c3); a later call's file of the same name
    takes its place. Its full name is `{plan}/{task}/{attempt}/{name}` (contract silas 15)."""

    attempt = models.ForeignKey("work.Attempt", on_delete=models.PROTECT, related_name="files")
    name = models.CharField(max_length=200)
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the content")

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["attempt", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["attempt", "name"], name="artifact_name_once")]

    def __str__(self) -> str:
        return self.name


class PoolSlot(TenantModel):
    """A place in the executors' pool, or in the line for it. It is taken while its queue message is leased under
    `fence`, so a worker that dies gives it back with its lease. `claims`: what the work may write; `covers`: what lies
    above."""

    scope_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    holder = models.UUIDField(unique=True, help_text="The queue message that is carried out")
    position = models.BigIntegerField(help_text="Its place in the queue: who asked first writes first")
    fence = models.BigIntegerField(default=-1, help_text="The lease under which it was let in")
    claims = ArrayField(models.CharField(max_length=400), default=list)
    covers = ArrayField(models.CharField(max_length=400), default=list)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "position"], name="pool_in_line")]

    def __str__(self) -> str:
        return self.kind


class Planning(TenantModel):
    """A planner at work on one wait of an item, over the rounds of research that it asks for (spec 19.4.1)."""

    work_item = models.ForeignKey("work.WorkItem", on_delete=models.PROTECT, related_name="plannings")
    attempt = models.PositiveIntegerField()
    purpose = models.CharField(max_length=32, choices=Waiting.choices)
    state = models.CharField(max_length=20, choices=PlanningState.choices, default=PlanningState.PLANNING)
    rounds = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["work_item", "attempt", "purpose"], name="planning_once")
        ]

    def __str__(self) -> str:
        return self.state


class ResearchRequest(TenantModel):
    """One question that a planner gave to an executor in research mode, and what came of it."""

    planning = models.ForeignKey(Planning, on_delete=models.PROTECT, related_name="requests")
    round = models.PositiveSmallIntegerField()
    dedupe_key = models.CharField(max_length=64)
    task = models.TextField()
    return_format = models.CharField(max_length=300)
    max_tokens = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=ResearchState.choices, default=ResearchState.ASKED)
    result = models.TextField(blank=True)
    error = models.CharField(max_length=60, blank=True)
    deadline = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["planning", "dedupe_key"], name="research_once")]

    def __str__(self) -> str:
        return self.state
