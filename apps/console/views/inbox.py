"""Who is talking with us, and who answers? Lists of conversations, one of them open; take over, reply, hand back."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.queries import members, open_cards
from apps.console import watching
from apps.console.asked import address_part, asked_by, is_narrowed, narrowing
from apps.console.lines import lines_of, with_notes
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from apps.sessions import forgetting, handoff, prompts, queries, summaries
from apps.sessions.access import PUBLIC
from apps.sessions.inbox import queries as desk
from apps.sessions.inbox import rules
from apps.sessions.inbox.enums import Shown, Snooze
from apps.sessions.models import ChatSession
from apps.sessions.visitors import consent, file_serving, files, prechat, ratings
from apps.tenants.models import Deployment
from apps.work.queries import work_items
from kernel.clock import now

TABS = (("mine", "Mine"), ("unassigned", "Unassigned"), ("all", "All"))
SHOWN_WORK = 10


@require_safe
@staff_view()
def inbox(request: StaffRequest, session_id: UUID | None = None) -> HttpResponseBase:
    return _inbox(request, queries.session_by_id(session_id) if session_id else None)


@require_safe
@staff_view()
def company(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Who else looks at this conversation: asked for when somebody comes or goes, and now and then."""
    opened = queries.session_by_id(session_id)
    return page(request, "console/_lookers.html", at="inbox", opened=opened, lookers=_lookers(request, opened))


@require_POST
@staff_view(*ANSWERING_ROLES)
def take_over(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.take_over(session_id, request.member.user)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def hand_back(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    handoff.hand_back(session_id, request.member.user)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def reply(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    said = request.POST
    handoff.reply(session_id, request.member.user, said.get("text", ""), nonce=said.get("once", ""))
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def forget(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    forgetting.forget_visitor(session_id, request.member.user)
    return after(request, session_id)


@require_safe
@staff_view()
def open_file(request: StaffRequest, session_id: UUID, file_id: UUID) -> HttpResponseBase:
    return file_serving.as_download(*files.file_of(session_id, file_id))


def after(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Go to the conversation anew: entries are written at commit, so they cannot be shown from inside this scope."""
    return redirect(conversation_address(request, session_id))


def conversation_address(request: StaffRequest, session_id: UUID) -> str:
    """With the place in the list that somebody came from."""
    return list_address(request, session_id)


def list_address(request: StaffRequest, session_id: UUID | None) -> str:
    """The list that somebody has before them, with the conversation that is open beside it."""
    asked = asked_by(request.GET)
    place = address_part(asked, before=asked.before)
    here = reverse("console-conversation", args=[session_id]) if session_id else reverse("console-inbox")
    return f"{here}{'?' if place else ''}{place}"


def _inbox(request: StaffRequest, opened: ChatSession | None) -> HttpResponseBase:
    """The list and the conversation beside it; news of one of them ask for that alone."""
    asked, htmx = asked_by(request.GET), request.htmx
    shown: dict[str, Any] = {
        "here": request.path,
        "asked": asked,
        "place": address_part(asked, before=asked.before),
        "snoozes": [(each.value, each.label) for each in Snooze],
        "choices": desk.choices(),
        "opened": opened,
        "has_list": htmx.target != "log",
        "has_thread": htmx.trigger != "conversations",
    }
    if shown["has_list"]:
        shown |= _list(request, asked)
    if opened and shown["has_thread"]:
        shown |= _thread(request, opened)
    return page(request, "console/inbox.html", at="inbox", **shown)


def _list(request: StaffRequest, asked: desk.Asked) -> dict[str, Any]:
    user = request.member.user
    counts, listed = desk.counts(user), desk.conversations(asked, user)
    return {
        "tab": asked.tab,
        "tabs": [(name, title, counts.get(name), address_part(asked, tab=name)) for name, title in TABS],
        "statuses": [(each, address_part(asked, shown=each)) for each in Shown],
        "narrowed": is_narrowed(asked),
        "widest": address_part(asked, label=None, deployment=None, assignee="", queue="", level=""),
        "kept": narrowing(asked),
        "unsearched": urlencode(narrowing(asked)),
        "counted": desk.COUNTED,
        "deployments": list(Deployment.objects.order_by("title")),
        "listed": listed,
        "older": address_part(asked, before=listed.older) if listed.older else "",
        "newest": address_part(asked) if asked.before else "",
    }


def _thread(request: StaffRequest, opened: ChatSession) -> dict[str, Any]:
    entries, moment = queries.thread(opened.pk), now()
    level = opened.level_at(moment)
    worn = desk.labels_of([opened.pk]).get(opened.pk, ())
    since = entries[0].seq if entries else 0
    return {
        "lines": with_notes(lines_of(opened, entries, moment=moment), desk.notes(opened.pk), since=since),
        "summary": summaries.hand_over(opened, entries),
        "is_mine": opened.owner_user_id == request.member.user.pk,
        "level": level,
        "level_until": opened.level_expires_at if level != PUBLIC else None,
        "cards": [card for card in open_cards() if card.session_id == opened.pk],
        **_beside(opened),
        "remembered": forgetting.remembered(opened),
        "work": work_items(session_id=opened.pk)[:SHOWN_WORK],
        "standing": desk.standing(opened, moment),
        "worn": worn,
        "worn_ids": {label.pk for label in worn},
        "earlier": desk.earlier(opened),
        "ready": [(one.name, rules.written_to(one.text, opened.visitor_name)) for one in desk.canned_replies()],
        "lookers": _lookers(request, opened),
    }


def _lookers(request: StaffRequest, opened: ChatSession) -> list[Any]:
    """Colleagues who have this conversation before them."""
    others = [user for user in members() if user != request.member.user]
    return watching.lookers(opened.tenant_id, opened.pk, others)


def _beside(opened: ChatSession) -> dict[str, Any]:
    """What the visitor did beside talking."""
    return {
        "files": {str(each) for each in files.kept_in(opened.pk)},
        "answers": [*prechat.answers_of(opened.pk), *prompts.filled_in(opened.pk)],
        "consents": consent.consents_of(opened.pk)[:3],
        "rating": ratings.rating_of(opened.pk),
    }
