"""Durable queues with leases, and the marks of messages that had their effect.

Constraints guarantee that a message id is on a queue once and that a scope has at most one leased message on a queue.
`position` is assigned by the database at insert and orders a scope.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.bus.enums import CLOSED, FAILING, LIVE, FailureCode, Kind, Queue, Sender, State, Urgency
from apps.bus.schemas import ResearchConstraints
from kernel.language import gettext_lazy as _
from kernel.taint import Taint
from kernel.tenancy import TenantModel


class QueueMessage(TenantModel):
    """One message (spec 19.2.1) and its delivery. `attempts` counts failed deliveries; `fence` counts all of them."""

    # No index of its own: others begin with it, and every index is written with each step of a message. No constraint
    # in the database: rows of the whole installation have `kernel.tenancy.INSTALLATION` here, which is no tenant.
    tenant = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    queue = models.CharField(max_length=16, choices=Queue.choices)
    kind = models.CharField(max_length=32, choices=Kind.choices)
    message_id = models.CharField(max_length=128)
    trace_id = models.CharField(max_length=64)
    scope_id = models.CharField(max_length=64)
    content = models.TextField(blank=True)
    payload = models.JSONField(null=True, blank=True)
    sender = models.CharField(max_length=16, choices=Sender.choices)
    taint = models.CharField(max_length=16, choices=[(taint.value, taint.value) for taint in Taint])
    task_id = models.UUIDField(null=True, blank=True)
    parent_task_id = models.UUIDField(null=True, blank=True)
    urgency = models.CharField(max_length=16, choices=Urgency.choices, default=Urgency.INFORMATIONAL)
    error_code = models.CharField(max_length=24, choices=FailureCode.choices, blank=True)
    retryable = models.BooleanField(null=True, blank=True)
    origin_agent = models.CharField(max_length=16, choices=Sender.choices, blank=True)
    attempt_number = models.PositiveSmallIntegerField(null=True, blank=True)
    extras = models.JSONField(null=True, blank=True, help_text=_("plan_markdown, approval_token, constraints"))
    created_at = models.DateTimeField(db_default=Now())

    position = models.BigIntegerField(editable=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    available_at = models.DateTimeField(db_default=Now())
    consumer = models.CharField(max_length=80, blank=True)
    fence = models.BigIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "queue", "message_id"], name="bus_message_once"),
            models.UniqueConstraint(
                fields=["tenant", "queue", "scope_id"],
                condition=Q(leased_until__isnull=False),
                name="bus_one_lease_a_scope",
            ),
            models.CheckConstraint(
                condition=Q(state__in=LIVE, finished_at__isnull=True)
                | (~Q(state__in=LIVE) & Q(finished_at__isnull=False)),
                name="bus_finished_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(state=State.LEASED, leased_until__isnull=False)
                | (~Q(state=State.LEASED) & Q(leased_until__isnull=True)),
                name="bus_leased_has_an_end",
            ),
            models.CheckConstraint(
                condition=Q(error_code="")
                | (Q(retryable__isnull=False, attempt_number__isnull=False) & ~Q(origin_agent="")),
                name="bus_error_has_its_headers",
            ),
            models.CheckConstraint(
                condition=~Q(kind=Kind.EXECUTION_STATUS, payload__status__in=list(FAILING)) | ~Q(error_code=""),
                name="bus_failing_status_says_why",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant", "queue", "scope_id", "position"], condition=Q(state__in=LIVE), name="bus_by_scope"
            ),
            models.Index(
                fields=["queue", "available_at"],
                include=["tenant", "scope_id"],
                condition=Q(state=State.QUEUED),
                name="bus_queued_by_time",
            ),
            models.Index(fields=["tenant", "finished_at"], condition=Q(state=State.DEAD), name="bus_dead"),
            models.Index(fields=["tenant", "finished_at"], condition=Q(state__in=CLOSED), name="bus_closed"),
        ]

    @property
    def subject(self) -> str:
        """What a job is about: the `scope_id` given to `services.enqueue` or `services.schedule`."""
        return self.scope_id.rpartition(":")[2]

    @property
    def plan_markdown(self) -> str:
        return str((self.extras or {}).get("plan_markdown", ""))

    @property
    def constraints(self) -> ResearchConstraints | None:
        found = (self.extras or {}).get("constraints")
        return None if found is None else ResearchConstraints.model_validate(found)

    @property
    def approval_token_id(self) -> UUID | None:
        found = (self.extras or {}).get("approval_token")
        return None if found is None else UUID(found)


class Processed(TenantModel):
    """Mark that a consumer had its effect for a message; written in the effect's own transaction (spec 19.2.3)."""

    # As above.
    tenant = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    consumer = models.CharField(max_length=80)
    message_id = models.CharField(max_length=128)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "message_id", "consumer"], name="bus_processed_once")
        ]
