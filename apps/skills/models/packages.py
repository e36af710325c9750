"""Tables of signed packages: the company's keys, trusted publishers, and packages that came. Used by `packages`.

A publisher is identified by their key alone; the name they give themselves decides nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.skills.enums import PackageState
from kernel.tenancy import TenantModel


class PackageKey(TenantModel):
    """A key with which the company signs. The private half is sealed; an old key stays known as the company's own."""

    public_key = models.CharField(max_length=64)
    sealed_private = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "public_key"], name="skill_key_once")]


class TrustedPublisher(TenantModel):
    """A publisher whose packages may be proposed: pinned by a person who compared the fingerprint."""

    public_key = models.CharField(max_length=64)
    name = models.CharField(max_length=120)
    trusted_by = models.CharField(max_length=60)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "public_key"], name="skill_publisher_once")]


class SkillPackage(TenantModel):
    """One package that came. Its bytes are kept while it waits for a person to check its publisher."""

    name = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    public_key = models.CharField(max_length=64)
    publisher = models.CharField(max_length=120)
    content: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True)
    state = models.CharField(max_length=10, choices=PackageState.choices, default=PackageState.WAITING)
    version = models.ForeignKey("skills.SkillVersion", on_delete=models.PROTECT, null=True, related_name="packages")
    by = models.CharField(max_length=60)
    created_at = models.DateTimeField(db_default=Now())
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    version_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state=PackageState.WAITING, content__isnull=False)
                | (~Q(state=PackageState.WAITING) & Q(content__isnull=True)),
                name="skill_package_kept_while_waiting",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "name", "public_key", "-number"], name="skill_package_newest")
        ]
