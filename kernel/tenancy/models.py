"""Base model, manager and queryset of every tenant table.

The manager refuses to work without a scope (every method, `.exists()` and `.create()` included), filters by the scope's
tenant and sets it on new rows. PostgreSQL's row-level security is the second wall (kernel.tenancy.migrations).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from uuid import UUID, uuid4

from django.db import models
from django.utils.text import capfirst

from kernel.tenancy.scope import ScopeError, current_scope, current_tenant_id

if TYPE_CHECKING:
    from apps.tenants.models import Tenant


M = TypeVar("M", bound=models.Model, covariant=True)


class TenantQuerySet(models.QuerySet[M, M]):
    """Sets the scope's tenant on every row it creates."""

    def bulk_create(self, objs: Iterable[M], *args: Any, **kwargs: Any) -> list[M]:
        # Django's `bulk_create` does not call `save()`.
        rows = list(objs)
        for row in rows:
            assert isinstance(row, TenantModel)
            row.stamp_tenant()
        return super().bulk_create(rows, *args, **kwargs)


class TenantManager(models.Manager[M]):
    """`Model.objects`: the current scope's rows, or `ScopeError`."""

    _queryset_class = TenantQuerySet

    def get_queryset(self) -> models.QuerySet[M, M]:
        scope = current_scope()
        rows = super().get_queryset()
        return rows if scope.tenant_id is None else rows.filter(tenant_id=scope.tenant_id)


class TenantModel(models.Model):
    """Abstract base of rows that belong to one tenant permanently."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    tenant: models.ForeignKey[Tenant, Tenant] = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, related_name="+"
    )

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        abstract = True
        # Django reads related rows and refreshes a row through the base manager, so that one needs the filter as well.
        base_manager_name = "objects"

    tenant_id: UUID

    def __str__(self) -> str:
        """What it is and the beginning of its id; models with a name of their own say that instead."""
        return f"{capfirst(self._meta.verbose_name)} {str(self.pk)[:8]}"

    def stamp_tenant(self) -> None:
        scope = current_scope()
        if scope.platform and self.tenant_id is not None:
            return
        mine = current_tenant_id()
        if self.tenant_id is None:
            self.tenant_id = mine
        if self.tenant_id != mine:
            raise ScopeError("a row of another tenant cannot be written here")

    def save(self: Self, *args: Any, **kwargs: Any) -> None:
        self.stamp_tenant()
        super().save(*args, **kwargs)
