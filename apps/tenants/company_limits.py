"""Set for how long a company keeps its data, and how much its visitors may send.

One row each (`Retention`, `VisitorLimits`); None uses the setting of the installation. The bounds of the values are
those of the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from django.conf import settings

from apps.audit.row_changes import change_fields
from apps.tenants.models import Retention, VisitorLimits

RETENTION = ("conversation_days", "memory_days", "skill_days", "message_days")
VISITOR_LIMITS = tuple(settings.VISITOR_LIMITS)
_Row = TypeVar("_Row", Retention, VisitorLimits)


def retention_values(*, lock: bool = False) -> dict[str, int | None]:
    """The scope's own days; None where the installation's hold. `lock` keeps others from changing them meanwhile."""
    return _values(_locked(Retention) if lock else Retention.objects.first(), RETENTION)


def visitor_limit_values(*, lock: bool = False) -> dict[str, int | None]:
    """The scope's own limits; None where the installation's hold. `lock` as in `retention_values`."""
    return _values(_locked(VisitorLimits) if lock else VisitorLimits.objects.first(), VISITOR_LIMITS)


def installation_days() -> dict[str, int | None]:
    """Days that hold where a company has none of its own; None is for good."""
    keep = {"memory_days": settings.MEMORY_DAYS, "message_days": settings.BUS_KEEP_DAYS}
    return {name: keep.get(name) for name in RETENTION}


def shortened(changes: Mapping[str, int | None]) -> list[str]:
    """Return the names of the fields by which these changes of the retention delete data earlier than now."""
    own, installation = retention_values(), installation_days()
    names = []
    for name, days in changes.items():
        before, after = own[name] or installation[name], days or installation[name]
        if after is not None and (before is None or after < before):
            names.append(name)
    return names


def change_retention(changes: Mapping[str, int | None], *, actor: str) -> dict[str, int | None]:
    """Set the named days and return all; the next clean-up of the company follows them. Raises `SilasError` `invalid`
    400."""
    return _change(Retention, RETENTION, changes, actor)


def change_visitor_limits(changes: Mapping[str, int | None], *, actor: str) -> dict[str, int | None]:
    """Set the named limits and return all. A socket asks for them once, when it begins. Raises `SilasError` `invalid`
    400."""
    return _change(VisitorLimits, VISITOR_LIMITS, changes, actor)


def _change(
    model: type[_Row], names: tuple[str, ...], changes: Mapping[str, int | None], actor: str
) -> dict[str, int | None]:
    row = _locked(model)
    change_fields(row, {name: changes[name] for name in names if name in changes}, actor=actor)
    return _values(row, names)


def _locked(model: type[_Row]) -> _Row:
    model.objects.get_or_create()
    # A second read, because `get_or_create` locks no row that exists.
    row: _Row = model.objects.select_for_update(of=("self",), no_key=True).get()
    return row


def _values(row: Retention | VisitorLimits | None, names: tuple[str, ...]) -> dict[str, int | None]:
    return {name: getattr(row, name, None) for name in names}
