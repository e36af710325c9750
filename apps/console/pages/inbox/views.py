"""Inbox: the list of conversations with one of them open, and the actions take over, reply, hand back and forget."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.access.rules import PUBLIC
from apps.approvals.queries import members, open_cards
from apps.console import viewers
from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.filters import (
    is_filtered,
    kept_parameters,
    list_query,
    parameters_without_search,
    query_string,
)
from apps.console.pages.inbox.thread import last_seen, thread_lines, with_notes
from apps.console.pages.saved_views.addresses import views_menu
from apps.contacts import history
from apps.inbox import handoff, macros, staff_files, steps, summaries
from apps.inbox import queries as desk
from apps.inbox.enums import Priority, Shown, Snooze, Sort, ViewPage
from apps.inbox.queries import Asked
from apps.sessions import queries
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment, User
from apps.visitors import consent, file_serving, files, forgetting, prechat, prompts, ratings
from apps.work.queries import work_items
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError

TABS = (
    ("mine", gettext_lazy("Mine")),
    ("mentions", gettext_lazy("Mentions")),
    ("unassigned", gettext_lazy("Unassigned")),
    ("all", gettext_lazy("All")),
)
SHOWN_WORK = 10


@require_safe
@staff_view()
def inbox(request: StaffRequest, session_id: UUID | None = None) -> HttpResponseBase:
    return _inbox(request, queries.session_by_id(session_id) if session_id else None)


@require_safe
@staff_view()
def show_viewers(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """The colleagues who have this conversation open; refreshed when one comes or goes."""
    opened = queries.session_by_id(session_id)
    seen_by = _viewers(opened, _teammates(request))
    return page(request, "console/_viewers.html", at="inbox", opened=opened, viewers=seen_by)


@require_POST
@staff_view(*ANSWERING_ROLES)
def take_over(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.take_over(session_id, request.member.user)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def hand_back(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.hand_back(session_id, request.member.user)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def reply(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    text, nonce = request.POST.get("text", ""), request.POST.get("once", "")
    handoff.reply(session_id, request.member.user, text, nonce=nonce)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def forget(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    forgetting.forget_visitor(session_id, request.member.user)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES, scoped=False)
def send_file(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Send one file to the visitor. A refusal is told as JSON, beside the file that is still in the composer."""
    file = request.FILES.get("file")
    try:
        if file is None:
            raise SilasError(ErrorCode.FORM_UNREADABLE)
        staff_files.send_file(
            request.member.tenant.pk,
            session_id,
            request.member.user,
            name=file.name or "",
            chunks=file.chunks(),
            nonce=request.POST.get("once", ""),
        )
    except SilasError as refusal:
        return JsonResponse(refusal.as_json(), status=refusal.status)
    return HttpResponse(status=204)


@require_safe
@staff_view()
def open_file(request: StaffRequest, session_id: UUID, file_id: UUID) -> HttpResponseBase:
    return file_serving.as_download(*files.file_of(session_id, file_id))


def to_conversation(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Redirect to the conversation. Entries are written at commit, so they can't be rendered inside this scope."""
    return redirect(list_address(request, session_id))


def list_address(request: StaffRequest, session_id: UUID | None) -> str:
    """Return the address of the current list with this conversation open beside it."""
    query = list_query(request.GET)
    place = query_string(query, before=query.before)
    here = reverse("console-conversation", args=[session_id]) if session_id else reverse("console-inbox")
    return f"{here}{'?' if place else ''}{place}"


def _inbox(request: StaffRequest, opened: ChatSession | None) -> HttpResponseBase:
    """Render the list and the conversation; a refresh of one of them renders only that part."""
    query, htmx = list_query(request.GET), request.htmx
    context: dict[str, Any] = {
        "here": request.path,
        "query": query,
        "place": query_string(query, before=query.before),
        "snoozes": Snooze.choices,
        "priorities": Priority.choices,
        "choices": desk.choices(),
        "opened": opened,
        "has_list": htmx.target != "log",
        "has_thread": htmx.trigger != "conversations",
    }
    if context["has_list"]:
        context |= _list(request, query)
    if opened and context["has_thread"]:
        context |= _thread(request, opened)
    return page(request, "console/inbox.html", at="inbox", **context)


def _list(request: StaffRequest, query: desk.Asked) -> dict[str, object]:
    user = request.member.user
    counts, listed = desk.counts(user, query), desk.conversations(query, user)
    return {
        "tab": query.tab,
        "tabs": [(name, title, counts.get(name), query_string(query, tab=name)) for name, title in TABS],
        "toggles": [
            (name, title, counts.get(name), is_on, query_string(query, **{name: not is_on}))
            for name, title, is_on in (
                ("unread", gettext("Unread"), query.unread),
                ("overdue", gettext("Overdue"), query.overdue),
            )
        ],
        "statuses": [(status, query_string(query, shown=status)) for status in Shown],
        "filtered": is_filtered(query),
        "unfiltered": query_string(Asked(query.tab, query.shown, words=query.words)),
        "sorts": Sort.choices,
        "kept": parameters_without_search(query),
        "unsearched": urlencode(parameters_without_search(query)),
        "counted": desk.COUNTED,
        "found_elsewhere": history.search(query.words) if query.words else [],
        "deployments": list(Deployment.objects.order_by("title")),
        "listed": listed,
        "older": query_string(query, before=listed.older) if listed.older else "",
        "newest": query_string(query) if query.before else "",
        **views_menu(request, ViewPage.INBOX, kept_parameters(query)),
    }


def _thread(request: StaffRequest, opened: ChatSession) -> dict[str, object]:
    entries, moment = queries.thread(opened.pk), now()
    level = opened.level_at(moment)
    labels = desk.labels_of([opened.pk]).get(opened.pk, ())
    since, state = entries[0].seq if entries else 0, desk.standing(opened, moment)
    notes, teammates = desk.notes(opened.pk), _teammates(request)
    lines = thread_lines(opened, entries, moment=moment, releases=queries.releases_by_turn(opened.pk))
    return {
        "lines": with_notes(lines, notes, since=since),
        "last_note": notes[-1].pk if notes else "",
        "seen_seq": last_seen(lines, opened.visitor_read_seq),
        "summary": summaries.hand_over(opened, entries),
        "is_mine": opened.owner_user_id == request.member.user.pk,
        "level": level,
        "level_until": opened.level_expires_at if level != PUBLIC else None,
        "cards": [card for card in open_cards() if card.session_id == opened.pk],
        **_visitor_extras(opened),
        "remembered": forgetting.remembered(opened),
        "work": work_items(session_id=opened.pk)[:SHOWN_WORK],
        "state": state,
        "labels": labels,
        "label_ids": {label.pk for label in labels},
        "earlier": desk.earlier(opened),
        "replies": [
            (reply.name, steps.reply_text(reply.text, opened, request.member.user)) for reply in desk.canned_replies()
        ],
        "viewers": _viewers(opened, teammates),
        "macros": macros.macros_for(request.member.user),
        "draft": _draft(request, opened),
        "teammates": teammates,
        "file_endings": staff_files.ENDINGS,
        "most_file_bytes": staff_files.MOST_BYTES,
    }


def _draft(request: StaffRequest, opened: ChatSession) -> str:
    """The reply of the macro that was just run, which the member may send."""
    try:
        macro = macros.macro_for(request.member.user, UUID(request.GET.get("draft", "")))
    except (ValueError, NotFound):
        return ""
    return steps.draft_of(macro.steps, opened.pk, request.member.user)


def _teammates(request: StaffRequest) -> list[User]:
    return [user for user in members() if user != request.member.user]


def _viewers(opened: ChatSession, teammates: list[User]) -> list[User]:
    """Return the teammates who have this conversation open."""
    return viewers.viewers_of(opened.tenant_id, opened.pk, teammates)


def _visitor_extras(opened: ChatSession) -> dict[str, object]:
    """Return the visitor's files, form answers, consents and rating."""
    return {
        "files": {str(file_id) for file_id in files.kept_in(opened.pk)},
        "answers": [*prechat.answers_of(opened.pk), *prompts.filled_in(opened.pk)],
        "consents": consent.consents_of(opened.pk)[:3],
        "rating": ratings.rating_of(opened.pk),
    }
