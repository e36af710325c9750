"""Actions on a card besides deciding it: assign it, edit its values, ask the customer, withdraw it, or revoke its
approval."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import queries
from apps.approvals.cards.lifecycle import assign_card, unassign_card
from apps.approvals.models import Card
from apps.approvals.tokens.services import revoke_token
from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.review.questions import may_ask, questions_about
from apps.console.pages.review.views import show, show_current, to_card
from apps.inbox.card_questions import ask_customer
from apps.inbox.handoff import MAX_REPLY, withdraw_requests
from apps.tenants.models import User
from apps.work.services import edit_plan, is_editable
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError

# Longer values get a text area.
_LONG = 80


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=show_current)
def assign(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Assign the card to the member with the id `to`, or unassign it."""
    by, to = request.member.user, request.POST.get("to", "")
    if to:
        assign_card(card_id, to=_member(to), by=by)
    else:
        unassign_card(card_id, by=by)
    return show(request, queries.get_card(card_id)) if request.htmx else to_card(request, card_id)


def _member(user_id: str) -> User:
    """Return the member with this id. Raises `SilasError`: `assignee_unfit` 409."""
    user = next((user for user in queries.members() if str(user.pk) == user_id), None)
    if user is None:
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, _("This person can't decide this card."))
    return user


@require_POST
@staff_view(*ANSWERING_ROLES)
def withdraw(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Withdraw the bot's requests in a conversation, for the member who answers it."""
    withdraw_requests(session_id, request.member.user)
    return redirect(f"{reverse('console-conversation', args=[session_id])}?tab={request.GET.get('tab', 'all')}")


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=show_current)
def take_back(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Revoke the approval of a decided card."""
    card = queries.get_card(card_id)
    approval = queries.approval_for(card)
    if approval is None:
        raise NotFound()
    revoke_token(approval.token, user=request.member.user, reason=request.POST.get("reason", ""))
    return show(request, card) if request.htmx else redirect("console-card", card_id)


@require_safe
@staff_view()
def question(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Show the form that asks the customer, to members who may decide the card."""
    card = queries.get_card(card_id)
    if not (card.is_open and request.member.may_decide and may_ask(card, questions_about(card))):
        return show(request, card)
    return page(request, "console/question.html", at="review", card=card, longest=MAX_REPLY)


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=show_current)
def ask(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Ask the customer, and go to the next card: this one waits for the answer."""
    ask_customer(card_id, request.member.user, request.POST.get("text", ""))
    return show(request, None, parked=queries.get_card(card_id)) if request.htmx else to_card(request, card_id)


@dataclass(frozen=True)
class Field:
    """One value of a call in the edit form."""

    name: str
    label: str
    value: str

    @property
    def is_long(self) -> bool:
        return len(self.value) > _LONG or "\n" in self.value


def _refused(request: StaffRequest, refusal: SilasError, card_id: UUID) -> HttpResponseBase:
    """Show the form again with the reason, or the card if it is no longer open."""
    card = queries.get_card(card_id)
    if not card.is_open or not is_editable(card):
        return show_current(request, refusal, card_id)
    return _form(request, card, refusal=refusal, status=409)


@require_safe
@staff_view()
def edit(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """Show the values of a card's calls as a form, to members who may decide it."""
    card = queries.get_card(card_id)
    may_edit = card.is_open and is_editable(card) and request.member.may_decide
    return _form(request, card) if may_edit else show(request, card)


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=_refused)
def resubmit(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    card = queries.get_card(card_id)
    new = edit_plan(card_id, user=request.member.user, calls=_calls(request, card))
    return (
        show(request, queries.get_card(new.pk), resubmitted=card) if request.htmx else redirect("console-card", new.pk)
    )


def _form(request: StaffRequest, card: Card, *, status: int = 200, **context: object) -> HttpResponseBase:
    fields = [
        {
            "tool": call["tool"],
            "fields": [
                _field(request, f"{place}.{number}", name, value)
                for number, (name, value) in enumerate(call["args"].items())
            ],
        }
        for place, call in enumerate(card.details["calls"])
    ]
    response = page(request, "console/edit.html", at="review", status=status, card=card, fields=fields, **context)
    if status >= 400:
        response["X-Console-Refusal"] = "edit"
    return response


def _field(request: StaffRequest, name: str, label: str, value: object) -> Field:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Field(name, label, request.POST.get(name, text))


def _calls(request: StaffRequest, card: Card) -> list[dict[str, Any]]:
    """Return the calls with the values of the form; every value keeps its type."""
    return [
        {
            "tool": call["tool"],
            "args": {
                name: _parse(request, f"{place}.{number}", name, value)
                for number, (name, value) in enumerate(call["args"].items())
            },
        }
        for place, call in enumerate(card.details.get("calls", ()))
    ]


def _parse(request: StaffRequest, field: str, name: str, old: object) -> object:
    """Return the new value. Raises `SilasError`: `edit_refused` 409 for text that is no JSON value."""
    text = request.POST.get(field)
    if text is None:
        return old
    if isinstance(old, str):
        return text.replace("\r\n", "\n")
    try:
        return json.loads(text)
    except ValueError:
        message = _("“%(name)s” is not a valid value.") % {"name": name.replace("_", " ")}
        raise SilasError(ErrorCode.EDIT_REFUSED, message) from None
