"""Review: the card to decide, the queue behind it, and decided cards (spec 0.5.1 to 0.5.4).

The gesture that a card needs follows from its risk: a tap, a tap with a confirmation, or a slide. It guards against
accidents; authorisation comes from the approval token and the role. A decision that comes too late is rolled back, and
the page shows what became of the card.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import queries
from apps.approvals.cards import kinds, metrics
from apps.approvals.cards.kinds.draft_review import MAX_DRAFT
from apps.approvals.cards.lifecycle import eligible_approvers, record_look
from apps.approvals.cards.risk import Friction
from apps.approvals.cards.schemas import AnswerDetails, AnswerRefused
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import ApprovalState, CardStatus, DeclineReason, Risk
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.console import viewers
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.review import filters, presenter
from apps.console.pages.review.answers import proposed_answer
from apps.console.pages.review.origins import origins_of
from apps.console.pages.review.questions import may_ask, questions_about
from apps.console.pages.saved_views.addresses import views_menu
from apps.console.pages.skills import presenter as skill_presenter
from apps.inbox.enums import ViewPage
from apps.sessions.models import ChatSession
from apps.suggestions.queries import preferences_behind
from apps.work.enums import WorkItemType
from apps.work.models import WorkItem
from apps.work.queries import count_left_out
from apps.work.rules import FINAL
from apps.work.services import is_editable
from kernel.clock import now
from kernel.errors import SilasError
from kernel.ids import require_id

# The note for colleagues with which a card is declined.
MAX_NOTE = 300
SLIDER_END = "100"
# From this many waiting cards of medium risk or more the page shows a warning (spec 0.5.4).
MANY_RISKY_CARDS = 6
# The script asks for so many cards at once (`review.js`), and so many results are offered for undoing beside the queue.
MOST_PARTS, MOST_UNDOABLE = 8, 3
# The header of an answer after which the page showed the next card at once: only the message is wanted.
ADVANCED = "X-Review-Advanced"


@require_safe
@staff_view()
def review(request: StaffRequest, card_id: UUID | None = None) -> HttpResponseBase:
    """Show the card with this id, decided or not, or the one that has waited longest."""
    return show(request, queries.get_card(card_id) if card_id else None)


@require_safe
@staff_view()
def card_parts(request: StaffRequest) -> HttpResponseBase:
    """Render the open cards with the ids `id`, each as the page shows it, for the script that keeps the next ones.

    They do not count as seen: a look is recorded by `card_news`, which the script asks for once it shows a card.
    """
    ids = [require_id(text) for text in request.GET.getlist("id")[:MOST_PARTS]]
    found = {card.pk: card for card in queries.undecided_cards().filter(pk__in=ids)}
    cards = [_details(request, found[card_id]) for card_id in ids if card_id in found]
    return render(request, "console/_card_parts.html", {"member": request.member, "cards": cards})


@require_POST
@staff_view(*DECIDING_ROLES)
def draft_preview(request: StaffRequest) -> HttpResponseBase:
    """Render the Markdown that is being written: the `text` of a draft, or the `answer` to a knowledge gap."""
    typed = request.POST.get("text") or request.POST.get("answer", "")
    return render(request, "console/_rendered.html", {"rendered": typed[:MAX_DRAFT]})


@require_safe
@staff_view()
def queue_news(request: StaffRequest) -> HttpResponseBase:
    """Refresh an empty queue: no content until there is a card that the filter lets through."""
    return show(request, None) if _queue(request, None)["queue"] else HttpResponse(status=204)


@require_safe
@staff_view()
def card_news(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Refresh an open card: only the queue and the viewers change, so that the card does not jump."""
    card = queries.get_card(card_id)
    if not card.is_open:
        return show(request, card)
    if request.member.may_decide:
        record_look(card, request.member.user)
    news = {**_queue(request, card), **_people(request, card), "card": card, "questions": questions_about(card)}
    response = page(request, "console/_news.html", at="review", **news)
    response["HX-Retarget"] = response["HX-Reselect"] = "#stack"
    return response


def show_current(
    request: StaffRequest, refusal: SilasError | AnswerRefused, card_id: UUID, **_: object
) -> HttpResponseBase:
    """Show the card as it is now after a refused decision, or the card that replaced it."""
    card = queries.get_card(card_id)
    fresh = queries.open_successor(card)
    if fresh is not None:
        return show(request, fresh, changed=card, status=409)
    return show(request, card, refusal=refusal, status=409, **(_entered(request) if "choice" in request.POST else {}))


def _entered(request: StaffRequest) -> dict[str, Any]:
    """What the person selected and wrote on the card, for a page that shows it again."""
    return {"ticked": request.POST.getlist("selected"), "wording": request.POST.get("text", "")}


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=show_current)
def decide(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    card, choice = queries.get_card(card_id), request.POST.get("choice", "")
    face = request.POST.get("face", "")
    kinds.get_choice(card.kind, card.payload, choice)
    if card.is_open:
        queries.require_unchanged(card, face)
    selected = request.POST.getlist("selected")
    if card.is_open and (gesture := _missing_gesture(request, card, choice)):
        return show(request, card, confirming=gesture, pressed=choice, **_entered(request))
    reason = request.POST.get("reason", "")
    words = AnswerDetails(
        freetext=request.POST.get("note", "")[:MAX_NOTE] or request.POST.get("freetext", ""),
        reason=DeclineReason(reason) if reason in DeclineReason.values else None,
        selected=selected,
        text=request.POST.get("text"),
        ticked=selected,
    )
    step_up = request.POST.get("step_up", "")
    outcome = answer_card(card_id, user=request.member.user, choice=choice, face=face, details=words, step_up=step_up)
    if isinstance(outcome, AnswerRefused):
        return show_current(request, outcome, card_id)
    return _after(request, card, outcome)


def _after(request: StaffRequest, card: Card, outcome: Decision | Card | None) -> HttpResponseBase:
    """Go to the next card, to the resubmitted one, or stay while another approval is needed."""
    next_id = outcome.pk if isinstance(outcome, Card) else card.pk
    if request.headers.get(ADVANCED):
        return _told(request, card, outcome)
    if not request.htmx:
        return to_card(request, next_id)
    if isinstance(outcome, Card):
        old = queries.get_card(card.pk)
        if old.status == CardStatus.WITHDRAWN:
            return show(request, queries.get_card(next_id), changed=old)
        return show(request, queries.get_card(next_id), resubmitted=card)
    if outcome is None:
        return show(request, queries.get_card(card.pk))
    left_out = count_left_out(card.subject_id) if card.of_kind.lists_items else 0
    return show(request, None, decided=queries.get_card(card.pk), left_out=left_out)


def to_card(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Redirect to a card, in the queue as the sender's page filters it."""
    return redirect(reverse("console-card", args=[card_id]) + filters.filter_of(request).query_string)


def _told(request: StaffRequest, card: Card, outcome: Decision | Card | None) -> HttpResponseBase:
    """Return only the message about an answer: the page already shows the next card."""
    words: dict[str, object] = {"answered": card, "filter": filters.filter_of(request)}
    if isinstance(outcome, Card):
        old = queries.get_card(card.pk)
        words |= {"fresh": outcome, "changed": old if old.status == CardStatus.WITHDRAWN else None}
    elif outcome is None:
        words["missing"] = queries.approval_requirements(card, request.member.user).missing
    else:
        words["decided"] = queries.get_card(card.pk)
        words["left_out"] = count_left_out(card.subject_id) if card.of_kind.lists_items else 0
    return render(request, "console/_told.html", words)


def _missing_gesture(request: StaffRequest, card: Card, choice: str) -> str:
    """Return `chip` or `slide` while the gesture for the card's risk is missing, else nothing (spec 0.5.2)."""
    button = next(button for button in presenter.buttons_of(card) if button.value == choice)
    gesture = presenter.required_gesture(card, button)
    if gesture is Friction.CONFIRM and request.POST.get("confirmed") != choice:
        return "chip"
    if gesture is Friction.SLIDE and request.POST.get("slid") != SLIDER_END:
        return "slide"
    return ""


def show(request: StaffRequest, card: Card | None, *, status: int = 200, **context: object) -> HttpResponseBase:
    """Render the review page with this card, or with the next one in the queue."""
    queue = _queue(request, card)
    active = card or queue["next_card"]
    details = _details(request, active) if active else {}
    if active and active.is_open and request.member.may_decide:
        record_look(active, request.member.user)
    context = {**queue, **details, "card": active, **_pace(request), **context}
    response = page(request, "console/review.html", at="review", status=status, **context)
    address = reverse("console-card", args=[active.pk]) if active else reverse("console-review")
    response["HX-Replace-Url"] = address + queue["filter"].query_string
    if status >= 400:
        response["X-Console-Refusal"] = "settled"
    return response


def _details(request: StaffRequest, card: Card) -> dict[str, Any]:
    may, asked = card.is_open and request.member.may_decide, questions_about(card)
    return {
        "card": card,
        **card_face(card, reads_documents=request.member.may_decide),
        "is_open": card.is_open,
        "buttons": presenter.buttons_of(card),
        "decline_reasons": DeclineReason.choices if may and not card.of_kind.is_offered else [],
        "questions": asked,
        "may_ask": may and may_ask(card, asked),
        "editable": may and is_editable(card),
        "conversation": ChatSession.objects.filter(pk=card.session_id).first() if card.session_id else None,
        "work": WorkItem.objects.filter(pk=card.subject_id).first() if card.status == CardStatus.DECIDED else None,
        **_approval(request, card),
        "successor": queries.successor_of(card),
        "related": queries.cards_sharing_records(card) if card.is_open else [],
        **_people(request, card),
    }


def card_face(card: Card, *, reads_documents: bool) -> dict[str, object]:
    """Return what `_card_face.html` shows beside the card itself. `reads_documents`: to a member who may open the pages
    of documents."""
    return {
        "face": queries.face_hash(card),
        "kind": card.of_kind,
        "body": [f"console/cards/{card.kind}.html", "console/cards/_plain.html"],
        "origins": origins_of(card),
        "preferences": preferences_behind(card),
        "skill": skill_presenter.skill_under_review(card),
        "proposed": proposed_answer(card, with_sources=reads_documents),
    }


def _people(request: StaffRequest, card: Card) -> dict[str, Any]:
    """Return the viewers of an open card, its possible assignees and its approvals so far."""
    if not card.is_open:
        return {}
    me, people = request.member.user, queries.members()
    approvers = queries.approvers_of(card)
    deciders, needs = eligible_approvers(card), queries.approval_requirements(card, me)
    return {
        "viewers": [user for user in viewers.viewers_of(card.tenant_id, card.pk, people) if user != me],
        "others": [user for user in deciders if user not in (me, card.assignee)],
        "approvers": approvers,
        "step_up": request.member.may_decide and needs.step_up,
        "missing": needs.missing,
        "has_approved": me in approvers,
        "may_approve": me in deciders,
    }


def _pace(request: StaffRequest) -> dict[str, Any]:
    """Return today's median decision time and whether this member decides too fast, as hints (spec 0.5.4)."""
    today = timezone.localtime(now()).replace(hour=0, minute=0, second=0, microsecond=0)
    user = request.member.user
    return {
        "median": metrics.median_decision_seconds(today),
        "hasty": request.member.may_decide and metrics.is_hasty(user.pk, now() - timedelta(hours=1)),
    }


def _queue(request: StaffRequest, card: Card | None) -> dict[str, Any]:
    """Return the cards of the chosen part of the queue that the filter lets through, in its order, the previous and
    next one for the keys K and J, and what can be undone. The notice of many risky cards counts all cards to decide."""
    to_decide, parked = queries.parts_of_queue()
    chosen = filters.filter_of(request)
    everything = parked if chosen.show is filters.Show.PARKED else to_decide
    waiting = chosen.apply(everything, user=request.member.user, moment=now())
    place = next((i for i, other in enumerate(waiting) if card and other.pk == card.pk), 0 if card is None else -1)
    undoable = queries.undoable_cards()[:MOST_UNDOABLE]
    return {
        "next_card": waiting[0] if waiting else None,
        "queue": waiting,
        "after": waiting[place + 1] if place + 1 < len(waiting) else None,
        "before": waiting[place - 1] if place > 0 else None,
        "undoable": [(other, queries.face_hash(other)) for other in undoable],
        "heavy": presenter.count_by_risk(to_decide, MANY_RISKY_CARDS),
        "filter": chosen,
        "part": len(everything),
        "to_decide_count": len(to_decide),
        "parked_count": len(parked),
        "choices": filters.choices_for(everything, chosen),
        "risks": Risk.choices,
        "due_choices": filters.DUE_CHOICES,
        "assigned_choices": filters.ASSIGNED_CHOICES,
        "sort_choices": filters.SORT_CHOICES,
        **views_menu(request, ViewPage.REVIEW, chosen.parameters),
    }


def _approval(request: StaffRequest, card: Card) -> dict[str, object]:
    """Return the approval of a decided card. It can be revoked while it is valid or its work is still in progress."""
    approval = queries.approval_for(card) if card.status == CardStatus.DECIDED else None
    if approval is None:
        return {}
    in_progress = approval.state is ApprovalState.USED_UP and _is_in_progress(approval.token)
    may_revoke = request.member.may_decide and (approval.is_valid or in_progress)
    return {"approval": approval, "in_progress": in_progress, "may_revoke": may_revoke}


def _is_in_progress(token: ApprovalToken) -> bool:
    """True if work based on this approval is unfinished. The goal of a standing approval does not count."""
    items = WorkItem.objects.filter(approval_token=token).exclude(type=WorkItemType.GOAL)
    return bool(items.exclude(status__in=FINAL).exists())
