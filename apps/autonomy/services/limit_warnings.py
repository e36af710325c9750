"""Warn once when a session has used four fifths of any of its own limits (B3).

Checked after each of its calls, and by the session check during a long call. One statement finds and marks the session,
so that of rivals one sends the warning. Inside a scope.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.db import connection

from apps.autonomy import queries, signals
from apps.autonomy.enums import TaskEvent
from kernel.tenancy import current_tenant_id

PERCENT = 80
# No warning for a limit of 0: the first call is over it.
_WARN = """
    UPDATE autonomy_autonomoussession AS told SET warned_at = statement_timestamp()
    FROM (
        SELECT s.id, json_object_agg(share.name, share.so_far::text) AS used
        FROM autonomy_autonomoussession s JOIN guard_guardedrun r ON r.id = s.run_id
        CROSS JOIN LATERAL (VALUES
            ('cost_usd', r.cost_total + r.cost_reserved),
            ('calls', r.calls),
            ('tokens', r.input_tokens + r.output_tokens),
            ('wall_seconds', floor(extract(epoch FROM statement_timestamp() - r.started_at))),
            ('memory_writes', (SELECT count(*) FROM autonomy_memoryproposal p
                               WHERE p.tenant_id = s.tenant_id AND p.root_id = coalesce(s.root_id, s.id)))
        ) AS share(name, so_far)
        CROSS JOIN LATERAL (SELECT CASE WHEN s.limits->>share.name ~ '^[0-9]{1,12}([.][0-9]{1,12})?$'
                                   THEN (s.limits->>share.name)::numeric END) AS limited(most)
        WHERE s.tenant_id = %(tenant)s AND s.id = %(session)s
          AND s.warned_at IS NULL AND s.status = 'running'
          AND limited.most > 0 AND share.so_far * 100 >= limited.most * %(percent)s
        GROUP BY s.id
    ) AS near
    WHERE told.id = near.id AND told.warned_at IS NULL
    RETURNING told.id, near.used::text
"""


def warn_if_near_limit(session_id: UUID) -> None:
    """Send the warning if it is due and was not sent."""
    values: dict[str, Any] = {"tenant": current_tenant_id(), "session": session_id, "percent": PERCENT}
    with connection.cursor() as cursor:
        cursor.execute(_WARN, values)
        rows = cursor.fetchall()
    for warned_id, used in rows:
        data = {"threshold_pct": PERCENT, "used": json.loads(used)}
        signals.task_event(queries.session(warned_id), TaskEvent.BUDGET_WARNING, data)
