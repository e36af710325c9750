"""Which questions could not be answered? Kept scrubbed, each wording once, with how often it was asked.

Written in web processes, at a turn's end, because no worker reads conversations. A company that is switched off keeps
nothing, and nobody fills the table: there is room for so many, and then the rarest makes way, reviewed ones first.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import connection

from apps.sessions.models import ChatSession
from kernel.canonical import sha256_hex
from kernel.llm.grounded.words import content, words
from kernel.tenancy import before_commit, current_tenant_id

MOST, _LEAST_WORDS, _LONGEST = 2000, 3, 600
_KEEP = """
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
    """Write a scrubbed question down with this scope's commit; False for what is none. The same words in another order
    and case are the same question."""
    asked = " ".join(text.split())[:_LONGEST]
    told = sorted(content(asked))
    if len(words(asked)) < _LEAST_WORDS or not told:
        return False
    values: dict[str, Any] = {
        "id": uuid4(),
        "tenant": current_tenant_id(),
        "deployment": session.deployment_id,
        "text": asked,
        "digest": sha256_hex(" ".join(told)),
        "level": session.level,
        "most": MOST,
    }
    before_commit(_write, values)
    return True


def _write(asked: list[dict[str, Any]]) -> None:
    with connection.cursor() as cursor:
        for values in asked:
            cursor.execute(_KEEP, values)
