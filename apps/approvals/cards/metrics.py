"""Compute the quality metrics of spec 0.5.6 from the tenant's own cards and decisions, in SQL.

Decision time runs from the moment when the person who decided first saw the card. The numbers are only displayed;
nothing is ever approved, delayed or blocked by them (spec 0.5.4). Nothing leaves the installation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from apps.approvals.enums import CardKind
from kernel.tenancy import current_tenant_id

# A median decision time below HASTY_SECONDS over HASTY_WINDOW decisions of medium risk or more looks like habit (spec
# 0.5.4).
HASTY_SECONDS, HASTY_WINDOW = 1.0, 10
# Fewer decisions than this do not say what is usual.
MIN_USUAL_DECISIONS = 5
# The end of a period without one.
FAR = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RiskStats:
    """The decisions of one risk. `median` is in seconds, None without recorded looks; `approved` is a share from 0 to
    1."""

    risk: str
    decisions: int
    median: float | None
    approved: float | None = None


@dataclass(frozen=True)
class DayStats:
    day: date
    decided: int
    declined: int
    median: float | None


@dataclass(frozen=True)
class FamilyStats:
    """How often one kind of action was corrected by edits, declines and undos, of all decisions about it."""

    name: str
    total: int
    edits: int
    declines: int
    undos: int

    @property
    def rate(self) -> float:
        return (self.edits + self.declines + self.undos) / self.total


@dataclass(frozen=True)
class Totals:
    """Metrics of a period. Rates are shares from 0 to 1, None if there is nothing to count; `median` is in seconds."""

    decisions: int
    median: float | None
    declined: float | None
    undone: float | None
    corrected: float | None
    freetext: float | None
    expired: int
    withdrawn: int
    taps_per_batch: float | None
    fatigue_triggers: int


# Every decision of the period, with what it was about and how long the person took.
_DECIDED = """
    WITH decided AS (
        SELECT d.id, d.user_id, d.verdict, d.decided_at, c.id AS card_id, c.kind, c.risk,
               coalesce(d.said ->> 'freetext', d.said ->> 'text', '') <> '' AS worded,
               coalesce(c.details ->> 'family', c.payload ->> 'action', c.payload ->> 'tool',
                        c.details -> 'calls' -> 0 ->> 'tool', c.kind) AS family,
               extract(epoch FROM d.decided_at - l.first_at)::float AS seconds
        FROM approvals_decision d
        JOIN approvals_card c ON c.id = d.card_id AND c.tenant_id = d.tenant_id
        LEFT JOIN LATERAL (
            SELECT min(first_at) AS first_at FROM approvals_look WHERE card_id = c.id AND user_id = d.user_id
        ) l ON true
        WHERE d.tenant_id = %(tenant)s AND d.decided_at >= %(since)s AND d.decided_at < %(until)s
              AND (%(deployment)s::uuid IS NULL OR c.deployment_id = %(deployment)s)
    )
"""
_OF_DEPLOYMENT = "(%(deployment)s::uuid IS NULL OR deployment_id = %(deployment)s)"
_MEDIAN = "percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds)"
_UNDONE = "count(*) FILTER (WHERE kind = 'post_execution' AND verdict = 'approved')"
_DECLINED = "count(*) FILTER (WHERE kind <> 'post_execution' AND verdict = 'declined')"
_EDITED = "count(*) FILTER (WHERE verdict = 'edit_requested')"
_PROPER = "count(*) FILTER (WHERE kind <> 'post_execution')"

_APPROVED = "count(*) FILTER (WHERE kind <> 'post_execution' AND verdict = 'approved')"
_BY_RISK = f"""{_DECIDED}
    SELECT risk, count(*), {_MEDIAN}, {_APPROVED}::float / nullif({_PROPER}, 0) FROM decided GROUP BY risk
"""

_DAYS = f"""{_DECIDED}
    SELECT day::date, count(decided.id), count(*) FILTER (WHERE verdict = 'declined'), {_MEDIAN}
    FROM generate_series(date_trunc('day', %(since)s AT TIME ZONE %(zone)s),
                         date_trunc('day', (%(until)s - interval '1 microsecond') AT TIME ZONE %(zone)s),
                         interval '1 day') AS day
    LEFT JOIN decided ON date_trunc('day', decided_at AT TIME ZONE %(zone)s) = day
    GROUP BY day ORDER BY day
"""

_FAMILIES = f"""{_DECIDED}
    SELECT family, {_PROPER}, {_EDITED}, {_DECLINED}, {_UNDONE} FROM decided
    GROUP BY family HAVING {_PROPER} > 0 ORDER BY 2 DESC, 1 LIMIT 12
"""

_SPREAD = f"""{_DECIDED}
    SELECT count(*) FILTER (WHERE seconds < 1), count(*) FILTER (WHERE seconds >= 1 AND seconds < 5),
           count(*) FILTER (WHERE seconds >= 5 AND seconds < 15),
           count(*) FILTER (WHERE seconds >= 15 AND seconds < 30), count(*) FILTER (WHERE seconds >= 30)
    FROM decided
"""

_TOTALS = f"""{_DECIDED}
    SELECT count(*), {_MEDIAN}, {_DECLINED}::float / nullif({_PROPER}, 0),
           {_UNDONE}::float / nullif((SELECT count(*) FROM approvals_card WHERE tenant_id = %(tenant)s
                                      AND kind = 'post_execution' AND created_at >= %(since)s
                                      AND created_at < %(until)s AND {_OF_DEPLOYMENT}), 0),
           ({_EDITED} + {_DECLINED} + {_UNDONE})::float / nullif({_PROPER}, 0),
           count(*) FILTER (WHERE worded)::float / nullif(count(*), 0),
           (SELECT count(*) FROM approvals_card
            WHERE tenant_id = %(tenant)s AND status = 'expired' AND settled_at >= %(since)s
                  AND settled_at < %(until)s AND {_OF_DEPLOYMENT}),
           (SELECT count(*) FROM approvals_card
            WHERE tenant_id = %(tenant)s AND status = 'withdrawn' AND settled_at >= %(since)s
                  AND settled_at < %(until)s AND {_OF_DEPLOYMENT})
    FROM decided
"""

# Taps per approved batch, over the cards it was edited from: one for the gesture (two from medium risk on), one for
# each changed tick.
_TAPS = """
    WITH RECURSIVE chain AS (
        SELECT c.id AS batch, c.id, c.supersedes_id, c.payload, CASE WHEN c.risk = 'low' THEN 1 ELSE 2 END AS taps
        FROM approvals_card c JOIN approvals_decision d ON d.card_id = c.id
        WHERE c.tenant_id = %(tenant)s AND c.kind = 'batch_review' AND d.verdict = 'approved'
              AND d.decided_at >= %(since)s AND d.decided_at < %(until)s
              AND (%(deployment)s::uuid IS NULL OR c.deployment_id = %(deployment)s)
        UNION ALL
        SELECT chain.batch, p.id, p.supersedes_id, p.payload, 1 + (
            SELECT count(*)::int FROM jsonb_array_elements(p.body -> 'items') AS item
            WHERE coalesce((item ->> 'unusual')::boolean, false) = (chain.payload -> 'item_ids' ? (item ->> 'item_id'))
        )
        FROM chain JOIN approvals_card p ON p.id = chain.supersedes_id AND p.tenant_id = %(tenant)s
    )
    SELECT avg(taps)::float FROM (SELECT sum(taps) AS taps FROM chain GROUP BY batch) AS batches
"""

_USUAL_WAIT = """
    SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM d.decided_at - c.created_at)::float)
    FROM approvals_decision d JOIN approvals_card c ON c.id = d.card_id AND c.tenant_id = d.tenant_id
    WHERE d.tenant_id = %(tenant)s AND d.decided_at >= %(since)s AND c.kind = %(kind)s
"""

# For every decision above low risk, whether the median of the person's last HASTY_WINDOW decisions is hasty.
_PACE = """
    WITH timed AS (
        SELECT d.user_id, d.decided_at, extract(epoch FROM d.decided_at - l.first_at)::float AS seconds,
               row_number() OVER (PARTITION BY d.user_id ORDER BY d.decided_at, d.id) AS place
        FROM approvals_decision d
        JOIN approvals_card c ON c.id = d.card_id AND c.tenant_id = d.tenant_id AND c.risk <> 'low'
        JOIN LATERAL (
            SELECT min(first_at) AS first_at FROM approvals_look WHERE card_id = c.id AND user_id = d.user_id
        ) l ON l.first_at IS NOT NULL
        WHERE d.tenant_id = %(tenant)s AND d.decided_at >= %(early)s
    ), paced AS (
        SELECT user_id, decided_at, place, (
            SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY b.seconds) FROM timed b
            WHERE b.user_id = a.user_id AND b.place > a.place - %(window)s AND b.place <= a.place
        ) < %(hasty)s AND place >= %(window)s AS hasty
        FROM timed a
    )
"""
_TRIGGERS = f"""{_PACE}, risen AS (
        SELECT decided_at, hasty AND NOT coalesce(lag(hasty) OVER (PARTITION BY user_id ORDER BY place), false) AS rose
        FROM paced
    )
    SELECT count(*) FROM risen WHERE rose AND decided_at >= %(since)s AND decided_at < %(until)s
"""
_HASTY = f"{_PACE} SELECT hasty FROM paced WHERE user_id = %(user)s ORDER BY place DESC LIMIT 1"


def totals(since: datetime, until: datetime = FAR, deployment: UUID | None = None) -> Totals:
    """Compute the totals of a period. Signs of fatigue are counted over all deployments, because they are a
    person's."""
    period = {"since": since, "until": until, "deployment": deployment}
    # One statement for all totals, so that they agree with each other while decisions come in.
    decisions, median, declined, undone, corrected, freetext, expired, withdrawn = _row(_TOTALS, **period)
    return Totals(
        decisions=decisions,
        median=median,
        declined=declined,
        undone=undone,
        corrected=corrected,
        freetext=freetext,
        expired=expired,
        withdrawn=withdrawn,
        taps_per_batch=_row(_TAPS, **period)[0],
        fatigue_triggers=_row(_TRIGGERS, since=since, until=until, **_window(since))[0],
    )


def by_risk(since: datetime, until: datetime = FAR, deployment: UUID | None = None) -> list[RiskStats]:
    """Return the risks about which something was decided, from the lowest."""
    order = ("low", "medium", "high", "irreversible")
    rows = _rows(_BY_RISK, since=since, until=until, deployment=deployment)
    return sorted((RiskStats(*row) for row in rows), key=lambda stats: order.index(stats.risk))


def by_day(since: datetime, until: datetime, *, zone: str, deployment: UUID | None = None) -> list[DayStats]:
    """Return every day of the period in the tenant's time zone, including days without decisions."""
    period = {"since": since, "until": until, "zone": zone, "deployment": deployment}
    return [DayStats(*row) for row in _rows(_DAYS, **period)]


def by_family(since: datetime, until: datetime = FAR, deployment: UUID | None = None) -> list[FamilyStats]:
    """Return the twelve kinds of action with the most decisions."""
    period = {"since": since, "until": until, "deployment": deployment}
    return [FamilyStats(*row) for row in _rows(_FAMILIES, **period)]


def decision_time_histogram(
    since: datetime, until: datetime = FAR, deployment: UUID | None = None
) -> tuple[int, int, int, int, int]:
    """Count the decisions that took under 1 s, 1 to 5, 5 to 15, 15 to 30, and longer."""
    one, five, fifteen, thirty, longer = _row(_SPREAD, since=since, until=until, deployment=deployment)
    return one, five, fifteen, thirty, longer


def median_decision_seconds(since: datetime) -> float | None:
    """Return the median decision time in seconds."""
    median: float | None = _row(f"{_DECIDED} SELECT {_MEDIAN} FROM decided", since=since, until=FAR, deployment=None)[0]
    return median


def usual_wait_seconds(kind: CardKind, since: datetime) -> float | None:
    """Return the median time from opening a card of this kind to its decision; None with fewer decisions than
    `MIN_USUAL_DECISIONS`."""
    count, median = _row(_USUAL_WAIT, kind=kind.value, since=since)
    return float(median) if count >= MIN_USUAL_DECISIONS else None


def is_hasty(user_id: UUID, now: datetime) -> bool:
    """True if this person's recent decisions were so fast that they look like habit. Only shown to them as a hint."""
    rows = _rows(_HASTY, since=now, user=user_id, **_window(now))
    return bool(rows and rows[0][0])


def _window(since: datetime) -> dict[str, Any]:
    return {"early": since - timedelta(days=14), "window": HASTY_WINDOW, "hasty": HASTY_SECONDS}


def _rows(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"tenant": current_tenant_id(), **values})
        return list(cursor.fetchall())


def _row(statement: str, **values: object) -> tuple[Any, ...]:
    return _rows(statement, **values)[0]
