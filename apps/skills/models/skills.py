"""Tables of installed skill versions, and of the tenant's own records.

A version's content and its files are written once and never changed; its status follows `TRANSITIONS`, and becomes
active only for what ships with the installation or by a spent approval of exactly this content (database triggers). A
record's `revision` rises with every change, and a change names the revision it was decided on.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.approvals.models import ApprovalToken
from apps.skills.enums import SkillSource, SkillStatus
from kernel.tenancy import TenantModel

# A database trigger enforces the same transitions (`append_only.COURSE`). Declined or failed content may be proposed
# again.
TRANSITIONS: dict[SkillStatus, frozenset[SkillStatus]] = {
    SkillStatus.PROPOSED: frozenset({SkillStatus.ACTIVE, SkillStatus.WITHDRAWN}),
    SkillStatus.ACTIVE: frozenset({SkillStatus.DISABLED}),
    SkillStatus.DISABLED: frozenset({SkillStatus.ACTIVE}),
    SkillStatus.WITHDRAWN: frozenset({SkillStatus.PROPOSED}),
}


class SkillVersion(TenantModel):
    """One content of one skill folder. `manifest` is its validated front matter, `body` its instructions.

    `report`: what the checks, the import and the trials reported. `card_id`: the card that asks for its approval.
    `approval_token`: the approval that was spent for it. The current version of a name is the active one that was
    activated last.
    """

    name = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    manifest = models.JSONField()
    body = models.TextField()
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=12, choices=SkillStatus.choices)
    source = models.CharField(max_length=12, choices=SkillSource.choices)
    report = models.JSONField(default=dict)
    requested_by = models.CharField(max_length=120, blank=True)
    card_id = models.UUIDField(null=True)
    approval_token = models.ForeignKey(ApprovalToken, on_delete=models.PROTECT, null=True, related_name="+")
    activated_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name", "digest"], name="skill_version_once"),
            models.UniqueConstraint(fields=["tenant", "name", "number"], name="skill_number_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "created_at"], condition=Q(status="proposed"), name="skill_proposed")
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.number}"


class SkillFile(TenantModel):
    """One file of a version."""

    version = models.ForeignKey(SkillVersion, on_delete=models.PROTECT, related_name="files")
    path = models.CharField(max_length=200)
    content = models.BinaryField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["version", "path"], name="skill_file_once")]


class Record(TenantModel):
    """One row of one of the tenant's books: a policy, a claim, an order. `subject` is the tenant's id of the customer
    it belongs to; an empty one belongs to no customer, and every tool that declares the book may see it."""

    book = models.CharField(max_length=60)
    key = models.CharField(max_length=80)
    subject = models.CharField(max_length=80, blank=True)
    data = models.JSONField(default=dict)
    revision = models.PositiveIntegerField(default=1)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["book", "key"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "book", "key"], name="record_key_once"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="record_revision_counts"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "subject", "book"], name="record_by_subject")]

    def __str__(self) -> str:
        return f"{self.book}/{self.key}"
