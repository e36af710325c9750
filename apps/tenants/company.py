"""Change the name and the time zone of the company whose scope is open."""

from __future__ import annotations

from collections.abc import Mapping

from apps.audit.row_changes import change_fields
from apps.tenants.models import Tenant
from apps.tenants.signals import tenant_changed
from kernel.tenancy import current_tenant_id

FIELDS = ("name", "timezone")


def company_values(*, lock: bool = False) -> dict[str, str]:
    """The company's name and time zone. `lock` keeps others from changing them meanwhile."""
    return _values(_company(lock=lock))


def change_company(changes: Mapping[str, str], *, actor: str) -> dict[str, str]:
    """Set the named fields and return all. Raises `SilasError` `invalid` 400."""
    row = _company(lock=True)
    if change_fields(row, {name: changes[name] for name in FIELDS if name in changes}, actor=actor):
        tenant_changed()
    return _values(row)


def _company(*, lock: bool) -> Tenant:
    rows = Tenant.objects.select_for_update(no_key=True) if lock else Tenant.objects.all()
    return rows.get(pk=current_tenant_id())


def _values(row: Tenant) -> dict[str, str]:
    return {name: getattr(row, name) for name in FIELDS}
