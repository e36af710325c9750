"""State that changes around a work item while it runs: its waits, calls, files, pool slot, and planner questions.

The rows are the state: a process that dies loses nothing that is not here. Written by `apps.work.services` only.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from apps.work.budgets import BudgetUsed
from apps.work.enums import PlanningState, ResearchState, SlotKind, Waiting
from apps.work.models.items import no_usage
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Course(TenantModel):
    """Runtime state of a work item between its attempts: deliveries, waits, planner help, cancellation."""

    work_item = models.OneToOneField("work.WorkItem", on_delete=models.PROTECT, related_name="course")
    granted = models.JSONField(
        default=list, help_text=_("The tools that the customer's level allowed when it was asked")
    )
    deliveries = models.PositiveIntegerField(default=0, help_text=_("How often it was queued for the executors"))
    waiting_for = models.CharField(max_length=32, choices=Waiting.choices, blank=True)
    waiting_until = models.DateTimeField(null=True, help_text=_("When the wait ends without an answer"))
    guidance = models.TextField(blank=True, help_text=_("What the planner advised for the next attempt; untrusted"))
    replaces = models.ForeignKey("work.WorkItem", on_delete=models.PROTECT, null=True, related_name="replaced_by")
    depth = models.PositiveSmallIntegerField(default=0, help_text=_("How many plans were tried before this one"))
    plan_run_id = models.UUIDField(null=True, help_text=_("The guarded run that pays for the planner's help"))
    plan_used = models.JSONField(default=no_usage, help_text=_("What the planner's help has cost"))
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
    """One call of an attempt as it really happened (contract silas 9, ExecutionResult). A successful call is written in
    the transaction that settles it, so a worker that dies afterwards loses nothing."""

    attempt = models.ForeignKey("work.Attempt", on_delete=models.PROTECT, related_name="ledger")
    call_id = models.UUIDField(null=True, help_text=_("The guard's own row of the call, if it was made"))
    tool = models.CharField(max_length=120)
    args_digest = models.CharField(max_length=64)
    success = models.BooleanField()
    value = models.JSONField(default=dict, help_text=_("What the tool returned; untrusted"))
    left = models.JSONField(
        default=list, help_text=_("The records that it changed, at the revision at which it left them")
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
    """A file that a successful call of an attempt left (spec 5.2.1 c3); a later file of the same name replaces it. Its
    full name is `{plan}/{task}/{attempt}/{name}` (contract silas 15)."""

    attempt = models.ForeignKey("work.Attempt", on_delete=models.PROTECT, related_name="files")
    name = models.CharField(max_length=200)
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    digest = models.CharField(max_length=64, help_text=_("SHA-256 of the content"))

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["attempt", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["attempt", "name"], name="artifact_name_once")]

    def __str__(self) -> str:
        return self.name


class PoolSlot(TenantModel):
    """A place in the executors' pool or in its queue. It is taken while its queue message is leased under `fence`, so
    it is freed with the lease when a worker dies. `claims`: what the work may write; `covers`: the directories above.
    """

    scope_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=12, choices=SlotKind.choices)
    holder = models.UUIDField(unique=True, help_text=_("The queue message that is carried out"))
    position = models.BigIntegerField(help_text=_("Position in the queue; conflicting items run in this order"))
    fence = models.BigIntegerField(default=-1, help_text=_("The lease under which it took the slot"))
    claims = ArrayField(models.CharField(max_length=400), default=list)
    covers = ArrayField(models.CharField(max_length=400), default=list)

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "position"], name="pool_in_line")]

    def __str__(self) -> str:
        return self.kind


class Planning(TenantModel):
    """A planner's work on one wait of an item, over its rounds of research (spec 19.4.1)."""

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
    """One question that a planner gave to an executor in research mode, with its answer."""

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
