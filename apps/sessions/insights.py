"""Figures about conversations: volume, resolution, handovers, response times, outcomes of messages, gate blocks.

Counted by SQL from the tenant's own rows, one statement per function, at a cost that grows with the time asked about. A
conversation belongs to the day on which it began. Conversations without a message and tests (`is_test`) do not count.
`deployment`: only its conversations; None: all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from kernel.tenancy import current_tenant_id


@dataclass(frozen=True)
class Asked:
    """From `since` up to, and without, `until`; days are those of `zone`. `release` narrows
    `by_day` to the conversations that have it."""

    since: datetime
    until: datetime
    zone: str
    deployment: UUID | None = None
    release: UUID | None = None

    def values(self) -> dict[str, Any]:
        tenant = current_tenant_id()
        return {**self.__dict__, "tenant": tenant}


@dataclass(frozen=True)
class Day:
    """`messages`: those that a turn looked at; `with_person`: those in which a person was wanted or
    took over."""

    day: date
    conversations: int
    messages: int
    with_person: int


@dataclass(frozen=True)
class HandOff:
    """Why a person was wanted, how often, how often one answered, and the median time until then, in seconds."""

    because: str
    wanted: int
    answered: int
    median: float | None


@dataclass(frozen=True)
class Turns:
    """What became of the messages; `p50` and `p95` in seconds, from the turn's beginning to its answer."""

    total: int
    answered: int
    cited: int
    refused: int
    suppressed: int
    stopped: int
    failed: int
    p50: float | None
    p95: float | None

    @property
    def cited_share(self) -> float | None:
        return self.cited / self.answered if self.answered else None


@dataclass(frozen=True)
class GateAction:
    gate: str
    blocked: int
    asked: int
    rewrote: int


_NO_TEST = """NOT EXISTS (
        SELECT FROM silas_sessions_chatsession tried
        WHERE tried.tenant_id = %(tenant)s AND tried.is_test AND {is_it})"""
# What the audit log says of hand-offs and gates in this time; read through a small index of its own.
_SAID = f"""
    SELECT e.event, e.subject, e.timestamp AS at, e.data FROM audit_auditentry e
    WHERE e.chain = %(tenant)s AND e.timestamp >= %(since)s AND e.timestamp < %(until)s
      AND e.event IN ('person_wanted', 'taken_over', 'staff_replied', 'gate_blocked', 'gate_asked', 'gate_mutation')
      AND (%(deployment)s::uuid IS NULL OR EXISTS (
          SELECT FROM silas_sessions_chatsession s
          WHERE s.tenant_id = %(tenant)s AND s.deployment_id = %(deployment)s AND 'session:' || s.id = e.subject))
      AND {_NO_TEST.format(is_it="'session:' || tried.id = e.subject")}
"""  # noqa: S608  (our own words only)
_OF_DEPLOYMENT = (
    "(%(deployment)s::uuid IS NULL OR s.deployment_id = %(deployment)s)"
    " AND (%(release)s::uuid IS NULL OR s.release_id = %(release)s)"
)
_DAYS = f"""
    WITH handed AS (
        SELECT DISTINCT e.subject FROM audit_auditentry e
        WHERE e.chain = %(tenant)s AND e.timestamp >= %(since)s AND e.event IN ('person_wanted', 'taken_over')
    ), spoken AS (
        SELECT date_trunc('day', s.created_at AT TIME ZONE %(zone)s) AS day, s.turns, handed.subject
        FROM silas_sessions_chatsession s LEFT JOIN handed ON handed.subject = 'session:' || s.id
        WHERE s.tenant_id = %(tenant)s AND s.created_at >= %(since)s AND s.created_at < %(until)s AND s.seq > 0
              AND NOT s.is_test AND {_OF_DEPLOYMENT}
    )
    SELECT day::date, count(spoken.turns), coalesce(sum(spoken.turns), 0)::bigint, count(spoken.subject)
    FROM generate_series(date_trunc('day', %(since)s AT TIME ZONE %(zone)s),
                         date_trunc('day', (%(until)s - interval '1 microsecond') AT TIME ZONE %(zone)s),
                         interval '1 day') AS day
    LEFT JOIN spoken USING (day) GROUP BY day ORDER BY day
"""  # noqa: S608  (our own words only)
_HAND_OFFS = f"""
    WITH said AS ({_SAID}), timed AS (
        SELECT event, at, data,
               row_number() OVER (PARTITION BY subject, event ORDER BY at) AS place,
               min(at) FILTER (WHERE event = 'staff_replied')
                   OVER (PARTITION BY subject ORDER BY at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS answered
        FROM said
    )
    SELECT coalesce(data::jsonb ->> 'because', ''), count(*), count(answered),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM answered - at)::float)
    FROM timed WHERE event = 'person_wanted' AND place = 1 GROUP BY 1 ORDER BY 2 DESC, 1
"""  # noqa: S608  (our own words only)
_GATES = f"""
    WITH said AS ({_SAID})
    SELECT coalesce(data::jsonb ->> 'gate', ''), count(*) FILTER (WHERE event = 'gate_blocked'),
           count(*) FILTER (WHERE event = 'gate_asked'), count(*) FILTER (WHERE event = 'gate_mutation')
    FROM said WHERE starts_with(event, 'gate_') GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 12
"""  # noqa: S608  (our own words only)
_TURNS = f"""
    WITH ended AS (
        SELECT t.status, t.reason, extract(epoch FROM t.finished_at - t.started_at)::float AS seconds
        FROM silas_sessions_turn t
        WHERE t.tenant_id = %(tenant)s AND t.started_at >= %(since)s AND t.started_at < %(until)s
              AND (%(deployment)s::uuid IS NULL OR EXISTS (
                  SELECT FROM silas_sessions_chatsession s
                  WHERE s.id = t.session_id AND s.tenant_id = %(tenant)s AND s.deployment_id = %(deployment)s))
              AND {_NO_TEST.format(is_it="tried.id = t.session_id")}
    )
    SELECT count(*), count(*) FILTER (WHERE status = 'done'), (
        SELECT count(*) FROM silas_sessions_chronicleentry c
        WHERE c.tenant_id = %(tenant)s AND c.created_at >= %(since)s AND c.created_at < %(until)s
              AND c.payload ? 'citations'
              AND (%(deployment)s::uuid IS NULL OR EXISTS (
                  SELECT FROM silas_sessions_chatsession s
                  WHERE s.id = c.session_id AND s.tenant_id = %(tenant)s AND s.deployment_id = %(deployment)s))
              AND {_NO_TEST.format(is_it="tried.id = c.session_id")}
    ), count(*) FILTER (WHERE status = 'stopped' AND starts_with(reason, 'gate:')),
       count(*) FILTER (WHERE status = 'stopped' AND reason = 'taken_over'),
       count(*) FILTER (WHERE status = 'stopped' AND NOT starts_with(reason, 'gate:') AND reason <> 'taken_over'),
       count(*) FILTER (WHERE status = 'failed'),
       percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE status = 'done')
    FROM ended
"""  # noqa: S608  (our own words only)


def by_day(asked: Asked) -> list[Day]:
    """Every day between, quiet ones too."""
    return [Day(*row) for row in _rows(_DAYS, asked)]


def hand_offs(asked: Asked) -> list[HandOff]:
    """By reason, the most frequent first; a conversation counts once. What was answered later than `until` is open."""
    return [HandOff(*row) for row in _rows(_HAND_OFFS, asked)]


def turns(asked: Asked) -> Turns:
    *counts, times = _rows(_TURNS, asked)[0]
    return Turns(*counts, *(times or (None, None)))


def gate_actions(asked: Asked) -> list[GateAction]:
    """The dozen gates that did most."""
    return [GateAction(*row) for row in _rows(_GATES, asked)]


def _rows(statement: str, asked: Asked) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, asked.values())
        return list(cursor.fetchall())
