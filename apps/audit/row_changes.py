"""Change named fields of one row: checked, saved and recorded in the audit log."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.db.models import Model

from apps.audit.admin_base import audit_values
from apps.audit.services import record_row_change
from kernel.errors import InvalidFields


def change_fields(row: Model, changes: Mapping[str, object], *, actor: str) -> list[str]:
    """Set these fields of a row that the caller has locked; the names of those that changed. Without a change nothing
    is written. Raises `SilasError` `invalid` 400 for a wrong value."""
    changed = [name for name, value in changes.items() if value != getattr(row, name)]
    if not changed:
        return []
    before = audit_values(row, changed)
    for name in changed:
        setattr(row, name, changes[name])
    try:
        row.clean_fields(exclude={field.name for field in row._meta.fields} - set(changed))
        row.validate_constraints(exclude={"tenant"})
    except ValidationError as error:
        raise InvalidFields(error.message_dict) from None
    row.save(update_fields=changed)
    record_row_change(row, "changed", actor=actor, before=before, after=audit_values(row, changed))
    return changed
