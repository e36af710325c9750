"""Set what happens at a limit, what a visitor may cost a day, and the price of models that no list knows.

One row for a company (`SpendingPolicy`). Inside a tenant scope.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.audit.row_changes import change_fields
from apps.guard.models import SpendingPolicy
from apps.guard.services.budgets import require_owner
from apps.tenants.models import User

FIELDS = ("on_limit", "visitor_daily_usd", "default_input", "default_output")


def spending_policy(*, lock: bool = False) -> dict[str, object]:
    """The company's own policy, or the defaults. `lock`: until it is changed in the same transaction."""
    row = _locked() if lock else SpendingPolicy.objects.first() or SpendingPolicy()
    return {name: getattr(row, name) for name in FIELDS}


def change_spending_policy(changes: Mapping[str, object], *, actor: str, user: User | None = None) -> dict[str, object]:
    """Set the named fields and return all; runs follow them from now on.

    Raises `SilasError`: `invalid` 400 for a wrong value, `forbidden_role` for a `user` who is no owner.
    """
    require_owner(user)
    row = _locked()
    change_fields(row, {name: changes[name] for name in FIELDS if name in changes}, actor=actor)
    return {name: getattr(row, name) for name in FIELDS}


def _locked() -> SpendingPolicy:
    SpendingPolicy.objects.get_or_create()
    # A second read, because `get_or_create` locks no row that exists.
    row: SpendingPolicy = SpendingPolicy.objects.select_for_update(no_key=True).get()
    return row
