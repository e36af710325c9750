"""What a socket is sent when it connects: state of the conversation and entries it missed, in one transaction; and how
far its visitor has read."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.access.rules import PUBLIC
from apps.access.tokens import Visitor
from apps.sessions import person_wanted, queries, registry, rules, served
from apps.sessions.models import ChatSession
from apps.sessions.ratelimit.limits import Bounds, bounds
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


@dataclass(frozen=True)
class Arrival:
    """The `ready` frame, the missed frames in order, after which `seq` they begin, the epoch that live deltas are
    held against, how much may be sent, and whether a form has to be answered before."""

    ready: dict[str, object]
    missed: list[dict[str, object]]
    after: int
    epoch: int
    bounds: Bounds
    form_due: bool = False


def arrive(visitor: Visitor, after_seq: int) -> Arrival:
    """Raises `SilasError("forbidden")` when the deployment was disabled or the session is not of this deployment."""
    session = queries.session_by_id(visitor.session_id)
    # The token may be older than the change that disabled the deployment.
    if not session.deployment.enabled or session.deployment.public_key != visitor.deployment_key:
        raise SilasError(ErrorCode.FORBIDDEN)
    # Who has seen more than there is means another conversation, which this one has taken the place of.
    after = after_seq if after_seq <= session.seq else 0
    said = missed(session.pk, after)
    return Arrival(_ready(session), said, after, session.owner_epoch, bounds(), registry.is_form_due(session))


def form_is_due(session_id: UUID) -> bool:
    return registry.is_form_due(queries.session_by_id(session_id))


def mark_read(session_id: UUID, seq: int) -> bool:
    """Record that the visitor was shown the conversation up to entry `seq`. Only moves forward, and never beyond the
    last entry. Returns whether that is news."""
    # Both bounds in the update itself: of two windows that read at once neither moves the mark back.
    session = ChatSession.objects.filter(pk=session_id, seq__gte=seq, visitor_read_seq__lt=seq)
    return bool(session.update(visitor_read_seq=seq))


def missed(session_id: UUID, after_seq: int) -> list[dict[str, object]]:
    """Every frame after `after_seq`, in order."""
    frames: list[dict[str, object]] = []
    while batch := queries.chronicle_after(session_id, after_seq):
        frames += [rules.frame_of(entry) for entry in batch]
        after_seq = batch[-1].seq
    return frames


def _ready(session: ChatSession) -> dict[str, object]:
    deployment, settings = session.deployment, served.settings_of(session)
    level = session.level_at(now())
    ends = session.level_expires_at if level != PUBLIC else None
    expiry = {"expires_at": ends.isoformat()} if ends else {}
    person = session.owner_user.display_name if session.owner_user else ""
    return {
        "type": "ready",
        "session_id": str(session.pk),
        "seq": session.seq,
        "access_level": level,
        "owner": session.owner,
        "name": person,
        "read": registry.read_by_staff(session),
        "team": person_wanted.team_of(session),
        "deployment": {
            "title": deployment.title,
            "theme": deployment.theme,
            "logo": deployment.logo,
            "avatar": deployment.avatar,
            "greeting": settings.greeting,
            "suggestions": settings.suggestions,
            "languages": settings.languages,
        },
        **expiry,
    }
