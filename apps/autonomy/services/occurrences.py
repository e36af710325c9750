"""Store what happened for the triggers that wait for it: one statement for all events of a transaction.

The announcing transaction waits for nothing and locks nothing: a row is added for each listening trigger, and a message
for the trigger, which makes one session of all rows that exist when it is delivered. Nothing is stored for a company
with automations turned off.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError, OperationalError, connection

from apps.autonomy.services.bus_messages import enqueue_trigger
from kernel.tenancy import before_commit, current_tenant_id, savepoint

_log = logging.getLogger(__name__)
# Topics written with an upload, where a savepoint is cheap and a failure must not lose the document.
_PROTECTED = "watch:"
_WRITE = """
    INSERT INTO autonomy_occurrence (id, tenant_id, trigger_id, subject)
    SELECT gen_random_uuid(), t.tenant_id, t.id, occurred.subject
    FROM unnest(%(topics)s::text[], %(subjects)s::text[]) AS occurred(topic, subject)
    JOIN autonomy_trigger t ON t.topic = occurred.topic
    JOIN autonomy_task k ON k.id = t.task_id
    WHERE t.tenant_id = %(tenant)s AND t.enabled AND t.deleted_at IS NULL AND t.topic <> ''
      AND k.deleted_at IS NULL AND k.quarantined_at IS NULL
      AND EXISTS (SELECT FROM autonomy_autonomysettings s WHERE s.tenant_id = t.tenant_id AND s.enabled)
    RETURNING trigger_id
"""


def record_occurrence(topic: str, subject: str = "") -> None:
    """Record it with this scope's commit. `topic` as of `rules.topic_for`; `subject` is an id."""
    before_commit(_write, (topic, subject[:80]))


def _write(occurrences: list[tuple[str, str]]) -> None:
    topics, subjects = zip(*occurrences, strict=True)
    values: dict[str, object] = {"tenant": current_tenant_id(), "topics": list(topics), "subjects": list(subjects)}
    if any(topic.startswith(_PROTECTED) for topic in topics):
        _write_protected(values)
    else:
        _execute(values)


def _write_protected(values: dict[str, object]) -> None:
    """Store an added document even if its triggers cannot be written."""
    try:
        with savepoint():
            _execute(values)
    except OperationalError:
        raise
    except DatabaseError as error:
        _log.error("autonomy_occurrences_lost error=%s", type(error).__name__)


def _execute(values: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, values)
        trigger_ids = {trigger_id for (trigger_id,) in cursor.fetchall()}
    for trigger_id in sorted(trigger_ids):
        enqueue_trigger(trigger_id)
