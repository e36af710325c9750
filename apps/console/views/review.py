"""What waits for a decision, and what was decided? One active card, the rest as a stack (spec 0.5.1 to 0.5.4).

The gesture a card needs follows from its risk: a tap; a tap and a confirming chip; a slide. It shows that somebody
meant it and is no authorisation: that is the approval token's, and the role's. A press that comes too late rolls back
and is shown what became of the card.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import metrics, queries
from apps.approvals import services as approvals
from apps.approvals.cards import kinds
from apps.approvals.cards.risk import Friction
from apps.approvals.enums import ApprovalState, CardKind, CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.schemas import AnswerRefused
from apps.console import faces, skill_faces, watching
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.origins import origins_of
from apps.console.views.pages import page
from apps.sessions.models import ChatSession
from apps.work.enums import WorkItemType
from apps.work.models import WorkItem
from apps.work.queries import count_left_out
from apps.work.rules import FINAL
from apps.work.services import is_editable
from kernel.clock import now
from kernel.errors import SilasError

SLID = "100"
# From this many waiting cards of medium risk or more the page says so, without adding a wait (spec 0.5.4).
MANY = 6


@require_safe
@staff_view()
def review(request: StaffRequest, card_id: UUID | None = None) -> HttpResponseBase:
    """The card with this id, settled or not, or the one that has waited longest."""
    return show(request, queries.get_card(card_id) if card_id else None)


@require_safe
@staff_view()
def queue_news(request: StaffRequest) -> HttpResponseBase:
    """For somebody who looks at an empty queue: nothing until there is a card."""
    return show(request, None) if queries.open_count() else HttpResponse(status=204)


@require_safe
@staff_view()
def card_news(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """What became of a card that somebody is looking at: while it is open only the queue and its company, so that it
    does not jump."""
    card = queries.get_card(card_id)
    if not card.is_open:
        return show(request, card)
    news = {**_queue(card), **_company(request, card), "card": card}
    response = page(request, "console/_news.html", at="review", **news)
    response["HX-Retarget"] = response["HX-Reselect"] = "#stack"
    return response


def settled(request: StaffRequest, refusal: SilasError | AnswerRefused, card_id: UUID, **_: Any) -> HttpResponseBase:
    """The card as it is now, for a press that was refused; nothing of the press is left. Where another card waits in
    its place, that one."""
    card = queries.get_card(card_id)
    fresh = queries.open_successor(card)
    if fresh is not None:
        return show(request, fresh, changed=card, status=409)
    return show(request, card, refusal=refusal, status=409, **_as_pressed(request))


def _as_pressed(request: StaffRequest) -> dict[str, Any]:
    """The ticks of a press that was refused stay as they were made."""
    return {"ticked": _ticked(request)} if "choice" in request.POST else {}


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=settled)
def decide(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    card, choice = queries.get_card(card_id), request.POST.get("choice", "")
    face = request.POST.get("face", "")
    kinds.get_choice(card.kind, card.payload, choice)
    if card.is_open:
        queries.require_unchanged(card, face)
    if card.is_open and (wanted := _missing_gesture(request, card, choice)):
        return show(request, card, confirming=wanted, pressed=choice, ticked=_ticked(request))
    words = approvals.AnswerDetails(
        freetext=request.POST.get("freetext", ""),
        selected=request.POST.getlist("selected"),
        text=request.POST.get("text", ""),
        ticked=_ticked(request),
    )
    step_up = request.POST.get("step_up", "")
    outcome = approvals.answer_card(
        card_id, user=request.member.user, choice=choice, face=face, details=words, step_up=step_up
    )
    if isinstance(outcome, AnswerRefused):
        return settled(request, outcome, card_id)
    return _after(request, card, outcome)


def _after(request: StaffRequest, card: Card, outcome: Decision | Card | None) -> HttpResponseBase:
    """On to the next card; to the one that was asked for anew; or stay, while somebody else has to say yes too."""
    now_asked = outcome.pk if isinstance(outcome, Card) else card.pk
    if not request.htmx:
        return redirect("console-card", now_asked)
    if isinstance(outcome, Card):
        old = queries.get_card(card.pk)
        if old.status == CardStatus.WITHDRAWN:
            return show(request, queries.get_card(now_asked), changed=old)
        return show(request, queries.get_card(now_asked), anew=card)
    if outcome is None:
        return show(request, queries.get_card(card.pk))
    left_out = count_left_out(card.subject_id) if card.kind == CardKind.BATCH_REVIEW else 0
    return show(request, None, decided=queries.get_card(card.pk), left_out=left_out)


def _ticked(request: StaffRequest) -> list[str]:
    """The lines of a batch that are ticked in this press; the page shows them ticked again while it asks for more."""
    return request.POST.getlist("selected")


def _missing_gesture(request: StaffRequest, card: Card, choice: str) -> str:
    """`chip` or `slide` while the gesture of the card's rung has not been made, else nothing (spec 0.5.2)."""
    gesture = faces.gesture(card, next(each for each in faces.buttons_of(card) if each.value == choice))
    if gesture is Friction.CONFIRM and request.POST.get("confirmed") != choice:
        return "chip"
    if gesture is Friction.SLIDE and request.POST.get("slid") != SLID:
        return "slide"
    return ""


def show(request: StaffRequest, card: Card | None, *, status: int = 200, **shown: Any) -> HttpResponseBase:
    """The review page with `card` before the person, or the next that waits."""
    queue = _queue(card)
    active = card or queue["next_card"]
    stack = [one for one in queue["stack"] if active is None or one.pk != active.pk]
    about = _about(request, active) if active else {}
    whole = {**queue, **about, "card": active, "stack": stack, **_pace(request), **shown}
    response = page(request, "console/review.html", at="review", status=status, **whole)
    response["HX-Replace-Url"] = reverse("console-card", args=[active.pk]) if active else reverse("console-review")
    if status >= 400:
        response["X-Console-Refusal"] = "settled"
    return response


def _about(request: StaffRequest, card: Card) -> dict[str, Any]:
    may = card.is_open and request.member.may_decide
    if may:
        approvals.record_look(card, request.member.user)
    return {
        "is_open": card.is_open,
        "face": queries.face_hash(card),
        "kind": kinds.get_kind(card.kind),
        "body": f"console/cards/{card.kind}.html",
        "buttons": faces.buttons_of(card),
        "editable": may and is_editable(card),
        "conversation": _conversation(card),
        "work": _work(card),
        "origins": origins_of(card),
        "asked": skill_faces.asked_about(card),
        **_yes(request, card),
        "successor": queries.successor_of(card),
        "related": queries.cards_sharing_records(card) if card.is_open else [],
        **_company(request, card),
    }


def _company(request: StaffRequest, card: Card) -> dict[str, Any]:
    """Who else is here: who looks at it, who sees to it, who said yes already."""
    if not card.is_open:
        return {}
    me, people = request.member.user, queries.members()
    yeses = queries.approvers_of(card)
    deciders, asked = approvals.eligible_approvers(card), queries.approval_requirements(card, me)
    return {
        "lookers": [user for user in watching.lookers(card.tenant_id, card.pk, people) if user != me],
        "others": [user for user in deciders if user not in (me, card.assignee)],
        "yeses": yeses,
        "step_up": request.member.may_decide and asked.step_up,
        "missing": asked.missing,
        "i_said_yes": me in yeses,
        "i_may_say_yes": me in deciders,
    }


def _pace(request: StaffRequest) -> dict[str, Any]:
    """The day's pace, and whether this person's looks like habit: cues, which hold nobody up (spec 0.5.4)."""
    today = timezone.localtime(now()).replace(hour=0, minute=0, second=0, microsecond=0)
    user = request.member.user
    return {
        "median": metrics.median_decision_seconds(today),
        "hasty": request.member.may_decide and metrics.is_hasty(user.pk, now() - timedelta(hours=1)),
    }


def _queue(card: Card | None) -> dict[str, Any]:
    """The waiting cards in order, and the neighbours that J and K lead to."""
    waiting = list(queries.open_cards())
    place = next((i for i, one in enumerate(waiting) if card and one.pk == card.pk), 0 if card is None else -1)
    return {
        "next_card": waiting[0] if waiting else None,
        "stack": [one for one in waiting if card is None or one.pk != card.pk],
        "after": waiting[place + 1] if place + 1 < len(waiting) else None,
        "before": waiting[place - 1] if place > 0 else None,
        "heavy": faces.density(waiting, MANY),
    }


def _work(card: Card) -> WorkItem | None:
    """What became of the work that a settled card was about."""
    if card.status != CardStatus.DECIDED:
        return None
    found: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first()
    return found


def _yes(request: StaffRequest, card: Card) -> dict[str, Any]:
    """The yes to a decided card; it can be taken back while it opens anything, or what it opened has not ended."""
    yes = queries.approval_for(card) if card.status == CardStatus.DECIDED else None
    if yes is None:
        return {}
    under_way = yes.state is ApprovalState.USED_UP and _is_under_way(yes.token)
    return {
        "yes": yes,
        "under_way": under_way,
        "may_take_back": request.member.may_decide and (yes.is_valid or under_way),
    }


def _is_under_way(token: ApprovalToken) -> bool:
    """Is there work that began, or will, on this yes? A goal that holds one is none."""
    items = WorkItem.objects.filter(approval_token=token).exclude(type=WorkItemType.GOAL)
    return bool(items.exclude(status__in=FINAL).exists())


def _conversation(card: Card) -> ChatSession | None:
    if card.session_id is None:
        return None
    found: ChatSession | None = ChatSession.objects.filter(pk=card.session_id).first()
    return found
