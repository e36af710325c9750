"""Record events in the audit log. `record()` is called inside the scope that makes a change; the scope appends all
entries in one call, last, before it commits.

Entries hold ids, kinds and counts, never message text, names, arguments or secrets; `record` refuses prose. Nothing
else writes to the chain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import Model

from apps.audit.enums import AuditEvent
from apps.audit.rules import PLATFORM_CHAIN
from kernel.canonical import canonical_json
from kernel.tenancy.scope import before_commit, current_scope

# `\Z`, because `$` would let a newline through at the end.
_WORD = re.compile(r"[\w.:/@+#-]{0,120}\Z")


def record(
    event: AuditEvent, *, actor: str = "system", subject: str | UUID = "", data: Mapping[str, object] | None = None
) -> UUID:
    """Append one entry to the scope's chain when it commits; returns the entry's id.

    `actor` and `subject` are `kind:id` words. Values of `data` are ids, kinds, counts, flags, or lists of them; text
    with spaces is refused (`ValueError`), because it may be private.
    """
    entry = _entry(event, actor, subject, data)
    before_commit(_append, entry, last=True)
    return UUID(entry["entry_id"])


def record_row_change(
    row: Model,
    change: str,
    *,
    actor: str,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> None:
    """Record that a setting was `added`, `changed` or `deleted`, as the administration does of its own changes.

    `before` and `after` are values by field, as the audit log holds them; those that differ are recorded.
    """
    data: dict[str, object] = {"model": row._meta.label_lower, "change": change}
    if before is not None and after is not None:
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        data["fields"] = changed
        data["before"] = {name: before[name] for name in changed if name in before}
        data["after"] = {name: after[name] for name in changed if name in after}
    record(AuditEvent.ADMIN_CHANGED, actor=actor, subject=f"row:{row.pk}", data=data)


def _entry(event: AuditEvent, actor: str, subject: str | UUID, data: Mapping[str, object] | None) -> dict[str, str]:
    """Return the entry as the database function takes it; the function adds number, time and hash."""
    values = dict(data or {})
    for word in (actor, str(subject), *_texts(values)):
        if not _WORD.match(word):
            raise ValueError("audit data holds ids, kinds and counts, not prose")
    return {
        "chain": str(current_scope().tenant_id or PLATFORM_CHAIN),
        "entry_id": str(uuid4()),
        "event": AuditEvent(event).value,
        "actor": actor,
        "subject": str(subject),
        "data": canonical_json(values),
    }


def _texts(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in (str(key), *_texts(item))]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, str):
        return [value]
    if value is None or isinstance(value, bool | int | float):
        return []
    raise ValueError(f"audit data cannot hold {type(value).__name__}")


def _append(entries: list[dict[str, str]]) -> None:
    # One round trip: the database function locks the head, numbers, dates, links and hashes.
    chain = entries[0]["chain"]
    with connection.cursor() as cursor:
        tenant = None if chain == str(PLATFORM_CHAIN) else chain
        cursor.execute("SELECT audit_append(%s::uuid, %s::uuid, %s)", [chain, tenant, json.dumps(entries)])
