"""Who is talking with us, and who answers? Conversations by tab, one of them open; take over, reply, hand back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.queries import open_cards
from apps.console.lines import lines_of
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from apps.sessions import forgetting, handoff, queries, summaries
from apps.sessions.beside import consents, files, forms, ratings, serving
from apps.sessions.models import ChatSession
from apps.work.queries import work_items
from kernel.clock import now

TABS = (("mine", "Mine"), ("bot", "Bot"), ("unassigned", "Unassigned"), ("all", "All"))
SHOWN_WORK = 10


@require_safe
@staff_view()
def inbox(request: StaffRequest, session_id: UUID | None = None) -> HttpResponseBase:
    return _inbox(request, queries.session_by_id(session_id) if session_id else None)


@require_POST
@staff_view(*ANSWERING_ROLES)
def take_over(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.take_over(session_id, request.member.user)
    return _after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def hand_back(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.hand_back(session_id, request.member.user)
    return _after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def reply(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.reply(session_id, request.member.user, request.POST.get("text", ""))
    return _after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def forget(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    forgetting.forget_visitor(session_id, request.member.user)
    return _after(request, session_id)


@require_safe
@staff_view()
def open_file(request: StaffRequest, session_id: UUID, file_id: UUID) -> HttpResponseBase:
    return serving.as_download(*files.file_of(session_id, file_id))


def _after(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Go to the conversation anew: entries are written at commit, so they cannot be shown from inside this scope."""
    return redirect(f"{reverse('console-conversation', args=[session_id])}?tab={_tab(request)}")


def _tab(request: StaffRequest) -> str:
    wanted = request.GET.get("tab") or request.POST.get("tab") or "all"
    return wanted if wanted in dict(TABS) else "all"


def _inbox(request: StaffRequest, opened: ChatSession | None) -> HttpResponseBase:
    tab, user = _tab(request), request.member.user
    counts = queries.tab_counts(user)
    shown: dict[str, Any] = {
        "tab": tab,
        "tabs": [(name, title, counts[name]) for name, title in TABS],
        "conversations": queries.inbox(tab, user),
        "opened": opened,
    }
    thread = _thread(request, opened) if opened else {}
    return page(request, "console/inbox.html", at="inbox", **shown, **thread)


def _thread(request: StaffRequest, opened: ChatSession) -> dict[str, Any]:
    level_holds = opened.level_expires_at is None or opened.level_expires_at > now()
    entries = queries.thread(opened.pk)
    return {
        "lines": lines_of(opened, entries),
        "summary": summaries.hand_over(opened, entries),
        "is_mine": opened.owner_user_id == request.member.user.pk,
        "level": opened.level if level_holds else "public",
        "level_until": opened.level_expires_at if level_holds else None,
        "cards": [card for card in open_cards() if card.session_id == opened.pk],
        **_beside(opened),
        "remembered": forgetting.remembered(opened),
        "work": work_items(session_id=opened.pk)[:SHOWN_WORK],
    }


def _beside(opened: ChatSession) -> dict[str, Any]:
    """What the visitor did beside talking."""
    return {
        "files": {str(each) for each in files.kept_in(opened.pk)},
        "answers": forms.answers_of(opened.pk),
        "consents": consents.consents_of(opened.pk)[:3],
        "rating": ratings.rating_of(opened.pk),
    }
