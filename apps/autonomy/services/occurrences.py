"""Keep what happened for the triggers that wait for it: one statement for all that a transaction announced.

Whoever announces it waits for nothing and locks nothing: a row is added for each trigger that listens, and a message
for the trigger, which makes one run of all rows that are there when it is delivered. A company that is switched off
collects nothing.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction

from apps.autonomy.services.bus_messages import enqueue_trigger
from kernel.tenancy import before_commit, current_tenant_id

_log = logging.getLogger(__name__)
# What is written with an upload: a savepoint of its own costs what nobody waits for there.
_CAREFUL = "watch:"
_WRITE = """
    INSERT INTO autonomy_occurrence (id, tenant_id, trigger_id, subject)
    SELECT gen_random_uuid(), t.tenant_id, t.id, said.subject
    FROM unnest(%(topics)s::text[], %(subjects)s::text[]) AS said(topic, subject)
    JOIN autonomy_trigger t ON t.topic = said.topic
    JOIN autonomy_task k ON k.id = t.task_id
    WHERE t.tenant_id = %(tenant)s AND t.enabled AND t.deleted_at IS NULL AND t.topic <> ''
      AND k.deleted_at IS NULL AND k.quarantined_at IS NULL
      AND EXISTS (SELECT FROM autonomy_autonomysettings s WHERE s.tenant_id = t.tenant_id AND s.enabled)
    RETURNING trigger_id
"""


def record_occurrence(topic: str, subject: str = "") -> None:
    """With this scope's commit. `topic` as `rules.topic_of` words it; `subject` is an id."""
    before_commit(_write, (topic, subject[:80]))


def _write(said: list[tuple[str, str]]) -> None:
    topics, subjects = zip(*said, strict=True)
    values: dict[str, Any] = {"tenant": current_tenant_id(), "topics": list(topics), "subjects": list(subjects)}
    if any(topic.startswith(_CAREFUL) for topic in topics):
        _write_or_leave(values)
    else:
        _execute(values)


def _write_or_leave(values: dict[str, Any]) -> None:
    """A document that comes in is stored whatever is wrong with those who wait for it."""
    try:
        with transaction.atomic():
            _execute(values)
    except OperationalError:
        raise
    except DatabaseError as error:
        _log.error("autonomy_occurrences_lost error=%s", type(error).__name__)


def _execute(values: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, values)
        heard = {trigger_id for (trigger_id,) in cursor.fetchall()}
    for trigger_id in sorted(heard):
        enqueue_trigger(trigger_id)
