"""A visitor's rating: one per conversation, which they may change for a day.

`rating_figures` is for statistics; comments are visitors' words and as external as those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

from django.db.models import Count, Q

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.knowledge import gaps
from apps.knowledge.enums import GapReason
from apps.memory import memories
from apps.releases.models import Release
from apps.sessions.enums import Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.queries import said_until
from apps.tenants.models import Deployment
from apps.visitors.enums import RatingScale
from apps.visitors.models import Rating
from apps.visitors.offers import offers_of
from apps.visitors.signals import conversation_rated
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.unicode_safety import replace_unstorable
from llm.offline.intents import looks_like_question

CHANGEABLE = timedelta(days=1)
# Up to this score the questions of the conversation count as gaps in the knowledge: the newest ones the bot answered.
_BAD, _GAPS, _READ = 2, 3, 40
_SCORES = {RatingScale.STARS: frozenset(range(1, 6)), RatingScale.THUMBS: frozenset({1, 5})}


@dataclass(frozen=True)
class RatingFigures:
    """`by_score` has each score that was given; `mean` is None without ratings."""

    count: int
    mean: float | None
    by_score: Mapping[int, int]
    comments: int


def rate(session_id: UUID, *, score: int, comment: str = "") -> Rating:
    """Keep or change the rating; the same once more changes nothing. Raises `NotFound` where none is asked for, 409
    `nothing_said`, 409 `rating_settled` after a day, 400 `invalid_rating`."""
    session = lock_session(session_id)
    scale = offers_of(session.deployment_id).rating
    if not scale:
        raise NotFound()
    if score not in _SCORES[RatingScale(scale)]:
        raise SilasError(ErrorCode.INVALID_RATING)
    if session.seq == 0:
        raise SilasError(ErrorCode.NOTHING_SAID)
    said, moment = replace_unstorable(comment).strip()[:1000], now()
    row: Rating | None = Rating.objects.filter(session_id=session_id).first()
    if row is None:
        row = Rating(session_id=session_id, deployment_id=session.deployment_id, created_at=moment)
    elif (row.scale, row.score, row.comment) == (scale, score, said):
        return row
    elif moment - row.created_at > CHANGEABLE:
        raise SilasError(ErrorCode.RATING_SETTLED)
    row.scale, row.score, row.comment, row.changed_at = scale, score, said, moment
    row.save()
    data = {"score": score, "scale": scale, "comment": bool(said)}
    record(AuditEvent.CONVERSATION_RATED, actor="visitor", subject=f"session:{session_id}", data=data)
    conversation_rated(row)
    _update_gaps(session, bad=score <= _BAD)
    return row


def _update_gaps(session: ChatSession, *, bad: bool) -> None:
    if not bad or session.is_test:
        gaps.withdraw_rating(session.pk)
        return
    said = said_until(session.pk, session.seq, limit=_READ).value
    answered = [
        message.shown
        for message, reply in pairwise(said)
        if message.sender == Sender.VISITOR and reply.sender == Sender.BOT and not message.kept_out
    ]
    asker = session.whose or str(session.pk)
    for text in [text for text in answered if looks_like_question(text)][-_GAPS:]:
        gaps.record_question(session.pk, memories.scrub(text), asker=asker, reason=GapReason.BADLY_RATED)


def rating_of(session_id: UUID) -> Rating | None:
    row: Rating | None = Rating.objects.filter(session_id=session_id).first()
    return row


def rating_figures(
    deployment: Deployment | None, since: datetime, until: datetime, *, release: Release | None = None
) -> RatingFigures:
    """Of what was first rated from `since` to before `until`; of all deployments of the scope's tenant for None.
    `release`: of its conversations only."""
    rows = Rating.objects.filter(created_at__gte=since, created_at__lt=until, session__is_test=False)
    rows = rows.filter(deployment=deployment) if deployment else rows
    rows = rows.filter(session__release=release) if release else rows
    commented = Count("pk", filter=~Q(comment=""))
    counted = list(rows.values("score").annotate(many=Count("pk"), commented=commented).order_by("score"))
    by_score: dict[int, int] = {each["score"]: each["many"] for each in counted}
    count = sum(by_score.values())
    mean = sum(score * many for score, many in by_score.items()) / count if count else None
    return RatingFigures(count, mean, by_score, sum(each["commented"] for each in counted))
