"""What waits for a decision, and what was decided? One active card, the rest as a stack (spec 0.5.1 to 0.5.3).

The gesture a card needs follows from its risk: a tap; a tap and a confirming chip; a slide. It shows that somebody
meant it and is no authorisation: that is the approval token's, and the role's.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import queries
from apps.approvals.enums import ApprovalVerdict, CardStatus, Risk
from apps.approvals.models import Card
from apps.approvals.services import decide_card
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from apps.sessions.models import ChatSession
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.errors import SilasError

SLID = "100"
# From this many waiting cards of medium risk or more the page says so, without adding a wait (spec 0.5.4).
MANY = 6


@require_safe
@staff_view()
def review(request: StaffRequest, card_id: UUID | None = None) -> HttpResponseBase:
    """The card with this id, settled or not, or the one that has waited longest."""
    return _review(request, queries.card(card_id) if card_id else None)


@require_safe
@staff_view()
def queue_news(request: StaffRequest) -> HttpResponseBase:
    """For somebody who looks at an empty queue: nothing until there is a card."""
    return _review(request, None) if queries.open_count() else HttpResponse(status=204)


@require_safe
@staff_view()
def card_news(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """What became of a card that somebody is looking at: nothing new while it is open, so that it does not jump."""
    card = queries.card(card_id)
    if not _is_open(card):
        return _review(request, card)
    response = page(request, "console/_news.html", at="review", **_queue(card))
    response["HX-Retarget"] = response["HX-Reselect"] = "#stack"
    return response


@require_POST
@staff_view(*DECIDING_ROLES)
def decide(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    card = queries.card(card_id)
    verdict = _verdict(request)
    if verdict == ApprovalVerdict.APPROVED and _is_open(card) and (wanted := _missing_gesture(request, card)):
        return _review(request, card, confirming=wanted)
    try:
        decide_card(card_id, user=request.member.user, verdict=verdict)
    except SilasError as refusal:
        if refusal.status != 409:
            raise
        return _review(request, queries.card(card_id), refusal=refusal, status=409)
    if not request.htmx:
        return redirect("console-card", card_id)
    return _review(request, None, decided=queries.card(card_id))


def _verdict(request: StaffRequest) -> ApprovalVerdict:
    said = request.POST.get("verdict", "")
    if said not in (ApprovalVerdict.APPROVED, ApprovalVerdict.DECLINED):
        raise SilasError("invalid_verdict", "A card is approved or declined.")
    return ApprovalVerdict(said)


def _missing_gesture(request: StaffRequest, card: Card) -> str:
    """`chip` or `slide` while the gesture of the card's rung has not been made, else nothing (spec 0.5.2)."""
    if card.risk == Risk.MEDIUM and request.POST.get("confirmed") != "chip":
        return "chip"
    if card.risk in (Risk.HIGH, Risk.IRREVERSIBLE) and request.POST.get("slid") != SLID:
        return "slide"
    return ""


def _review(request: StaffRequest, card: Card | None, *, status: int = 200, **shown: Any) -> HttpResponseBase:
    queue = _queue(card)
    active = card or queue["next_card"]
    response = page(
        request,
        "console/review.html",
        at="review",
        status=status,
        card=active,
        is_open=active is not None and _is_open(active),
        is_late=active is not None and active.status == CardStatus.OPEN and not _is_open(active),
        conversation=_conversation(active),
        work=_work(active),
        **{**queue, "stack": [one for one in queue["stack"] if active is None or one.pk != active.pk]},
        **shown,
    )
    response["HX-Replace-Url"] = reverse("console-card", args=[active.pk]) if active else reverse("console-review")
    if status >= 400:
        response["X-Console-Refusal"] = "settled"
    return response


def _queue(card: Card | None) -> dict[str, Any]:
    """The waiting cards in order, and the neighbours that J and K lead to."""
    waiting = list(queries.open_cards())
    place = next((i for i, one in enumerate(waiting) if card and one.pk == card.pk), 0 if card is None else -1)
    heavy = sum(one.risk != Risk.LOW for one in waiting)
    return {
        "next_card": waiting[0] if waiting else None,
        "stack": [one for one in waiting if card is None or one.pk != card.pk],
        "after": waiting[place + 1] if place + 1 < len(waiting) else None,
        "before": waiting[place - 1] if place > 0 else None,
        "heavy": heavy if heavy >= MANY else 0,
    }


def _is_open(card: Card) -> bool:
    return card.status == CardStatus.OPEN and card.expires_at > now()


def _work(card: Card | None) -> WorkItem | None:
    """What became of the work that a settled card was about."""
    if card is None or card.status != CardStatus.DECIDED:
        return None
    found: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first()
    return found


def _conversation(card: Card | None) -> ChatSession | None:
    if card is None or card.session_id is None:
        return None
    found: ChatSession | None = ChatSession.objects.filter(pk=card.session_id).first()
    return found
