"""List a browser's conversations: those whose resume tokens it presents.

A browser keeps one resume token per conversation, and there is no name under which several could be asked for: the
token of one conversation, short-lived or long, reveals nothing about any other (ADR 55).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.access import tokens
from apps.sessions.models import ChatSession
from apps.sessions.queries import session_by_id

MOST = 30


def conversations(session_id: UUID, resume_tokens: Sequence[str]) -> list[tuple[str, ChatSession]]:
    """Each with the token it was shown by, last active first: of the same deployment as the one that asks, with
    something said in it, and not of another customer than who is known here. A wrong token is passed by."""
    asking = session_by_id(session_id)
    by_hash = {tokens.hash_resume_token(each): each for each in resume_tokens[:MOST]}
    rows = ChatSession.objects.filter(deployment_id=asking.deployment_id, resume_hash__in=list(by_hash), seq__gt=0)
    found = rows.order_by("-last_active_at")
    return [(by_hash[row.resume_hash], row) for row in found if not asking.whose or row.whose in ("", asking.whose)]
