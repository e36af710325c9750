"""The audit log: per tenant one hash chain that cannot be rewritten, its head, and signed checkpoints.

Rows enter through the database function `audit_append` only; triggers refuse UPDATE, DELETE and TRUNCATE. The format is
docs/audit-format.md (contract silas 14.1 without its weaknesses: sequence in the hash, appends serialised).
"""

from __future__ import annotations

from typing import ClassVar, Self
from uuid import uuid4

from django.db import models

from kernel.language import gettext_lazy as _
from kernel.tenancy.models import TenantManager

COUNTED = ("person_wanted", "taken_over", "staff_replied", "gate_blocked", "gate_asked", "gate_mutation")


class ChainRow(models.Model):
    """A row of one chain: a tenant's, or the platform's own, which has no tenant."""

    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, null=True, related_name="+")

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"


class AuditEntry(ChainRow):
    """One event. `data` is canonical JSON text of ids, kinds and counts."""

    entry_id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    chain = models.UUIDField()
    seq = models.BigIntegerField()
    event = models.CharField(max_length=60)
    actor = models.CharField(max_length=80)
    subject = models.CharField(max_length=80, blank=True)
    data = models.TextField()
    timestamp = models.DateTimeField()
    prev_hash = models.CharField(max_length=64)
    entry_hash = models.CharField(max_length=64)

    class Meta(ChainRow.Meta):
        ordering: ClassVar = ["chain", "seq"]
        verbose_name_plural = _("audit entries")
        constraints: ClassVar = [models.UniqueConstraint(fields=["chain", "seq"], name="audit_entry_seq_once")]
        indexes: ClassVar = [
            models.Index(fields=["chain", "subject", "seq"], name="audit_by_subject"),
            # The few events that Insights counts over a period.
            models.Index(
                fields=["chain", "timestamp"], condition=models.Q(event__in=COUNTED), name="audit_counted_by_time"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq}: {self.event}"


class AuditHead(ChainRow):
    """The end of a chain. Every append locks it last, so that writers queue here and nowhere else."""

    chain = models.UUIDField(primary_key=True)
    seq = models.BigIntegerField(default=0)
    entry_hash = models.CharField(max_length=64)


class AuditCheckpoint(ChainRow):
    """A signed statement that the chain had `seq` entries ending in `entry_hash`, which reveals a tail cut off
    later."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    chain = models.UUIDField()
    seq = models.BigIntegerField()
    entry_hash = models.CharField(max_length=64)
    key_id = models.CharField(max_length=16)
    signature = models.CharField(max_length=120)
    created_at = models.DateTimeField()

    class Meta(ChainRow.Meta):
        ordering: ClassVar = ["chain", "seq"]
        indexes: ClassVar = [models.Index(fields=["chain", "seq"], name="audit_checkpoint_by_chain")]

    def __str__(self) -> str:
        return f"Checkpoint {self.seq}"


class AuditKey(models.Model):
    """A key that signs checkpoints: its public half, and for older keys the sealed private half."""

    key_id = models.CharField(primary_key=True, max_length=16)
    public_key = models.CharField(max_length=64)
    sealed_private = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)
