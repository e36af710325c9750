"""Store the questions that could not be answered: scrubbed, each wording once, with how often it was asked.

Written in web processes at the end of a turn, because workers have no right to read conversations. Nothing is stored
for a company with automations turned off. The table cannot be flooded: when it is full, a new question replaces the
rarest one, reviewed ones first.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import connection

from apps.sessions.models import ChatSession
from kernel.canonical import sha256_hex
from kernel.tenancy import before_commit, current_tenant_id
from llm.offline.words import content, words

MOST, _LEAST_WORDS, _LONGEST = 2000, 3, 600
_RECORD = """
    WITH allowed AS (
        SELECT FROM autonomy_autonomysettings s WHERE s.tenant_id = %(tenant)s AND s.enabled
    ), known AS (
        SELECT FROM autonomy_openquestion o
        WHERE o.tenant_id = %(tenant)s AND o.deployment_id = %(deployment)s AND o.digest = %(digest)s
    ), made_way AS (
        DELETE FROM autonomy_openquestion WHERE id IN (
            SELECT o.id FROM autonomy_openquestion o
            WHERE o.tenant_id = %(tenant)s AND NOT EXISTS (SELECT FROM known) AND EXISTS (SELECT FROM allowed)
              AND (SELECT count(*) FROM autonomy_openquestion n WHERE n.tenant_id = %(tenant)s) >= %(most)s
            ORDER BY o.reviewed_at IS NULL, o.count, o.last_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    )
    INSERT INTO autonomy_openquestion AS q (id, tenant_id, deployment_id, text, digest, level, count)
    SELECT %(id)s, %(tenant)s, %(deployment)s, %(text)s, %(digest)s, %(level)s, 1
    WHERE EXISTS (SELECT FROM allowed)
    ON CONFLICT (deployment_id, digest) DO UPDATE SET count = q.count + 1, last_at = statement_timestamp()
"""


def record_question(session: ChatSession, text: str) -> bool:
    """Record a scrubbed question with this scope's commit; False for a text that is too short to be one.

    The same words in another order and case are the same question.
    """
    question = " ".join(text.split())[:_LONGEST]
    content_words = sorted(content(question))
    if len(words(question)) < _LEAST_WORDS or not content_words:
        return False
    values: dict[str, object] = {
        "id": uuid4(),
        "tenant": current_tenant_id(),
        "deployment": session.deployment_id,
        "text": question,
        "digest": sha256_hex(" ".join(content_words)),
        "level": session.level,
        "most": MOST,
    }
    before_commit(_write, values)
    return True


def _write(questions: list[dict[str, Any]]) -> None:
    with connection.cursor() as cursor:
        for values in questions:
            cursor.execute(_RECORD, values)
