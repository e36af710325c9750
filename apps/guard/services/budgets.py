"""Set and remove limits on spending, and resume what a reached limit paused. One row a period for each holder.

Inside a tenant scope.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record, record_row_change
from apps.guard import rules
from apps.guard.enums import Holder, Period
from apps.guard.models import Budget
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError

_COLUMN = {Holder.DEPLOYMENT: "deployment_id", Holder.VISITOR: "visitor_ref", Holder.TASK: "task_ref"}


def set_budget(
    period: Period,
    limit_usd: Decimal,
    *,
    holder: Holder = Holder.TENANT,
    ref: UUID | None = None,
    actor: str = "system",
    user: User | None = None,
) -> Budget:
    """Set the limit of the whole tenant, or of the deployment, visitor or task whose id is `ref`.

    What was spent in the current window stays. An unchanged limit is left alone; a changed one sends its alerts again,
    and pauses only if it is already used up. Raises `SilasError`: `bad_limit` for an invalid amount, `bad_holder` for a
    holder without its id, `forbidden_role` for a `user` who is no owner.
    """
    require_owner(user)
    limit = _amount(limit_usd)
    which = {"period": Period(period), **_holder_columns(Holder(holder), ref)}
    budget: Budget
    budget, is_new = Budget.objects.get_or_create(**which, defaults={"limit_usd": limit})
    # `get_or_create` locks no row that exists; the comparison below must see what a concurrent change has stored.
    budget = Budget.objects.select_for_update(no_key=True).get(pk=budget.pk)
    if is_new or budget.limit_usd != limit:
        budget.limit_usd, budget.alerted = limit, rules.highest_threshold(budget.spent, limit)
        budget.paused_in = budget.paused_in if budget.alerted == rules.LIMIT else None
        budget.save(update_fields=["limit_usd", "alerted", "paused_in"])
        record_row_change(budget, "added" if is_new else "changed", actor=actor)
    return budget


def remove_budget(budget_id: UUID, *, actor: str, user: User | None = None) -> None:
    """Remove a limit. Raises `NotFound`, and `forbidden_role` for a `user` who is no owner."""
    require_owner(user)
    budget = Budget.objects.select_for_update(no_key=True).filter(pk=budget_id).first()
    if budget is None:
        raise NotFound()
    record_row_change(budget, "deleted", actor=actor)
    budget.delete()


def resume_spending(*, actor: str) -> int:
    """Resume what reached limits paused before their windows end; returns how many had. The limits stay: a call that
    does not fit is still refused. An administrator's own pause stays as well."""
    resumed: int = Budget.objects.filter(paused_in__isnull=False).update(paused_in=None)
    if resumed:
        record(AuditEvent.SPENDING_RESUMED, actor=actor, data={"budgets": resumed})
    return resumed


def require_owner(user: User | None) -> None:
    """None is a program, whose key was checked where it came in."""
    if user is not None:
        require_role(user, (Role.OWNER,))


def _holder_columns(holder: Holder, ref: UUID | None) -> dict[str, UUID | None]:
    if holder is Holder.PLATFORM or (holder is Holder.TENANT) is (ref is not None):
        raise SilasError(ErrorCode.BAD_HOLDER)
    return dict.fromkeys(_COLUMN.values()) | ({_COLUMN[holder]: ref} if ref else {})


def _amount(limit_usd: Decimal) -> Decimal:
    """Return the amount if its column can hold every digit. Raises `SilasError`."""
    amount = Decimal(limit_usd)
    if not amount.is_finite() or not 0 <= amount < rules.MAX_USD or amount != round(amount, rules.DIGITS):
        raise SilasError(ErrorCode.BAD_LIMIT)
    return amount
