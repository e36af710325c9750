"""Work items and their attempts, verification runs and goal cycles.

`WorkItem.plan` is the canonical text of the 23 hashed fields, byte for byte what was approved; state that changes while
an item runs is kept outside of it. A trigger holds every status change to `rules.TRANSITIONS`.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from apps.work import rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import AttemptStatus, CycleOutcome, WorkItemStatus, WorkItemType, WorkReason
from apps.work.schemas import WorkItemSpec
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

VISITOR = "visitor"


def no_usage() -> dict[str, object]:
    """Default of the usage fields. The migrations refer to this function."""
    return BudgetUsed().model_dump(mode="json")


class WorkItem(TenantModel):
    """One task, project or goal. `id` is also the plan's own id."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField(null=True, help_text=_("The conversation it came from"))
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    follow_up_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="follow_ups")
    batch = models.ForeignKey("Batch", on_delete=models.PROTECT, null=True, related_name="work")
    type = models.CharField(max_length=10, choices=WorkItemType.choices)
    title = models.CharField(max_length=300)
    plan = models.TextField(help_text=_("Canonical JSON of what an approval binds"))
    plan_hash = models.CharField(max_length=64)
    subject = models.CharField(max_length=120, blank=True, help_text=_("The tenant's own id of the verified customer"))
    requested_by = models.CharField(max_length=80, default=VISITOR)
    trace_id = models.CharField(max_length=64)

    status = models.CharField(max_length=10, choices=WorkItemStatus.choices, default=WorkItemStatus.PENDING)
    reason = models.CharField(max_length=40, choices=WorkReason.choices, blank=True)
    approval_token = models.ForeignKey("approvals.ApprovalToken", on_delete=models.PROTECT, null=True, related_name="+")
    run_id = models.UUIDField(null=True, help_text=_("The guarded run that all its attempts share"))
    attempts_made = models.PositiveIntegerField(default=0)
    budget_used = models.JSONField(default=no_usage)
    summary = models.TextField(blank=True)
    last_error = models.TextField(blank=True)
    next_steps = models.JSONField(default=list)
    due_at = models.DateTimeField(null=True, help_text=_("When a scheduled goal is checked next"))
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "status", "created_at"], name="work_by_status"),
            models.Index(fields=["tenant", "session_id", "created_at"], name="work_by_session"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(status__in=[WorkItemStatus.RUNNING, WorkItemStatus.DONE])
                | Q(approval_token__isnull=False),
                name="work_runs_only_approved",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def spec(self) -> WorkItemSpec:
        return WorkItemSpec.model_validate_json(self.plan)

    @property
    def used(self) -> BudgetUsed:
        return BudgetUsed.model_validate(self.budget_used)

    @property
    def is_cancellable(self) -> bool:
        return rules.is_cancellable(WorkItemType(self.type), WorkItemStatus(self.status))

    @property
    def is_resumable(self) -> bool:
        return rules.is_resumable(WorkItemType(self.type), WorkItemStatus(self.status))

    @property
    def is_part(self) -> bool:
        """True for a task of a project: it is decided, counted and reported with the project."""
        return self.parent is not None and self.parent.type == WorkItemType.PROJECT


class GoalFile(WorkItem):
    """Proxy under which the admin imports a goal from its file."""

    class Meta:
        proxy = True
        verbose_name = _("goal")


class Attempt(TenantModel):
    """One run of the executor over a work item, and its result."""

    work_item = models.ForeignKey(WorkItem, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=12, choices=AttemptStatus.choices, default=AttemptStatus.RUNNING)
    model_name = models.CharField(max_length=120, blank=True)
    summary = models.TextField(blank=True)
    error = models.TextField(blank=True)
    artifacts = models.JSONField(default=list, help_text=_("Names of the files its calls left"))
    used = models.JSONField(default=no_usage)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["work_item", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["work_item", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["work_item"], condition=Q(status=AttemptStatus.RUNNING), name="attempt_one_running"
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number}"


class VerificationRun(TenantModel):
    """Results of the independent checks after an attempt: `results` as the contract's VerificationResult, in order."""

    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, related_name="verification")
    all_passed = models.BooleanField()
    results = models.JSONField()
    ran_at = models.DateTimeField()

    def __str__(self) -> str:
        return "passed" if self.all_passed else "failed"


class GoalCycle(TenantModel):
    """One check of a goal: the results and what followed (spec 5.2.3). A cycle happens once, by its unique `due_at`."""

    goal = models.ForeignKey(WorkItem, on_delete=models.PROTECT, related_name="cycles")
    due_at = models.DateTimeField()
    outcome = models.CharField(max_length=12, choices=CycleOutcome.choices)
    results = models.JSONField(default=list)
    spawned = models.ForeignKey(WorkItem, on_delete=models.PROTECT, null=True, related_name="+")
    ran_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-due_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["goal", "due_at"], name="cycle_once")]

    def __str__(self) -> str:
        return f"{self.goal_id} {self.outcome}"
