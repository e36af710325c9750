"""What can it do, and about whom? Installed skill versions, and the tenant's own small records.

A version and its files are written once and never changed (database triggers); a record's `revision` rises with every
change, and a change names the revision it was decided on.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kernel.tenancy import TenantModel


class SkillVersion(TenantModel):
    """One content of one skill folder. `manifest` is its validated front matter, `body` its instructions."""

    name = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    manifest = models.JSONField()
    body = models.TextField()
    number = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name", "digest"], name="skill_version_once"),
            models.UniqueConstraint(fields=["tenant", "name", "number"], name="skill_number_once"),
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
    it belongs to; empty means that it is about nobody and every tool that declares the book may see it."""

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
