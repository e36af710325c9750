"""Set and remove a tenant's own prices of models. One row per model; a changed price applies to the next run.

Inside a tenant scope.
"""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError

from apps.audit.admin_base import audit_values
from apps.audit.services import record_row_change
from apps.guard.models import ModelPrice
from apps.guard.services.budgets import require_owner
from apps.tenants.models import User
from kernel.errors import InvalidFields, NotFound
from kernel.language import gettext
from llm.pricing import RATE_FIELDS, Rates


def set_price(model: str, rates: Rates, *, actor: str, user: User | None = None) -> ModelPrice:
    """Set what a million tokens of the model cost; an unchanged price is left alone.

    Raises `SilasError`: `invalid` 400 for a wrong name or amount, `forbidden_role` for a `user` who is no owner.
    """
    require_owner(user)
    wanted = {name: getattr(rates, name) for name in RATE_FIELDS}
    try:
        ModelPrice(model=model, **wanted).clean_fields(exclude={"tenant"})
        if negative := [name for name, amount in wanted.items() if amount is not None and amount < 0]:
            raise ValidationError(dict.fromkeys(negative, gettext("A price is 0 or more.")))
    except ValidationError as error:
        raise InvalidFields(error.message_dict) from None
    row: ModelPrice
    row, is_new = ModelPrice.objects.get_or_create(model=model, defaults=wanted)
    # `get_or_create` locks no row that exists; the comparison below must see what a concurrent change has stored.
    row = ModelPrice.objects.select_for_update(no_key=True).get(pk=row.pk)
    before = {} if is_new else audit_values(row, RATE_FIELDS)
    for name, amount in wanted.items():
        setattr(row, name, amount)
    after = audit_values(row, RATE_FIELDS)
    if before != after:
        row.save()
        record_row_change(row, "added" if is_new else "changed", actor=actor, before=before, after=after)
    return row


def remove_price(price_id: UUID, *, actor: str, user: User | None = None) -> None:
    """Remove a price, so that the public list holds. Raises `NotFound`, and `forbidden_role` for a `user` who is no
    owner."""
    require_owner(user)
    row = ModelPrice.objects.select_for_update(no_key=True).filter(pk=price_id).first()
    if row is None:
        raise NotFound()
    record_row_change(row, "deleted", actor=actor, before=audit_values(row, RATE_FIELDS), after={})
    row.delete()
