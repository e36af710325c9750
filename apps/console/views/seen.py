"""What did the model see when it gave this answer? One turn's window, by zone; whoever reads the Inbox may look."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.views.pages import page
from apps.sessions.prompt_trace import last_attempt, seen_in

MOST_TURN = 2**31 - 1


@require_safe
@staff_view()
def seen(request: StaffRequest, session_id: UUID, number: int) -> HttpResponseBase:
    turn = last_attempt(session_id, number=min(number, MOST_TURN))
    window = seen_in(turn)
    return page(request, "console/seen.html", at="inbox", turn=turn, opened=turn.session, window=window)
