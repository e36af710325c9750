"""What the model saw: the context window of one turn, by zone, for every member who can read the inbox."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.sessions.prompt_trace import last_attempt, seen_in

MOST_TURN = 2**31 - 1


@require_safe
@staff_view()
def seen(request: StaffRequest, session_id: UUID, number: int) -> HttpResponseBase:
    turn = last_attempt(session_id, number=min(number, MOST_TURN))
    window = seen_in(turn)
    return page(request, "console/seen.html", at="inbox", turn=turn, opened=turn.session, window=window)
