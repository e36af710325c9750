"""What else may be done with a card than answer it? Hand it to somebody, change its values, take it or its yes back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import queries
from apps.approvals import services as approvals
from apps.approvals.enums import Withdrawal
from apps.approvals.models import Card
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from apps.console.views.review import settled, show
from apps.sessions.queries import session_by_id
from apps.work.services import edit_plan, is_editable
from kernel.errors import NotFound, SilasError

_LONG = 80


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=settled)
def assign(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """To the member with the id `to`, or to nobody."""
    by, to = request.member.user, request.POST.get("to", "")
    if to:
        approvals.assign_card(card_id, to=_member(to), by=by)
    else:
        approvals.unassign_card(card_id, by=by)
    return show(request, queries.get_card(card_id)) if request.htmx else redirect("console-card", card_id)


def _member(given: str) -> Any:
    """The member with this id; raises `assignee_unfit` for anything else."""
    found = next((user for user in queries.members() if str(user.pk) == given), None)
    if found is None:
        raise SilasError("assignee_unfit", "That person could not decide this.", status=409)
    return found


@require_POST
@staff_view(*ANSWERING_ROLES)
def withdraw(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Whoever answers a conversation takes back what the bot has asked for in it."""
    opened, user = session_by_id(session_id), request.member.user
    if opened.owner_user_id != user.pk:
        raise SilasError("not_yours", "Take the conversation over first.", status=409)
    approvals.withdraw_session_cards(session_id, reason=Withdrawal.HANDOFF, actor=f"user:{user.pk}")
    return redirect(f"{reverse('console-conversation', args=[session_id])}?tab={request.GET.get('tab', 'all')}")


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=settled)
def take_back(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """The yes that was given to a card opens nothing from now on."""
    card = queries.get_card(card_id)
    yes = queries.approval_for(card)
    if yes is None:
        raise NotFound("approval")
    approvals.revoke_token(yes.token, user=request.member.user, reason=request.POST.get("reason", ""))
    return show(request, card) if request.htmx else redirect("console-card", card_id)


@dataclass(frozen=True)
class Field:
    """One value of a call in the form."""

    name: str
    label: str
    value: str

    @property
    def is_long(self) -> bool:
        return len(self.value) > _LONG or "\n" in self.value


def _refused(request: StaffRequest, refusal: SilasError, card_id: UUID) -> HttpResponseBase:
    """The form again with the reason, while the card still waits; what became of the card, when it does not."""
    card = queries.get_card(card_id)
    if not card.is_open or not is_editable(card):
        return settled(request, refusal, card_id)
    return _form(request, card, refusal=refusal, status=409)


@require_safe
@staff_view()
def edit(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    """The values of a card's calls as a form, for whoever may decide it."""
    card = queries.get_card(card_id)
    may = card.is_open and is_editable(card) and request.member.may_decide
    return _form(request, card) if may else show(request, card)


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=_refused)
def ask_anew(request: StaffRequest, card_id: UUID) -> HttpResponseBase:
    card = queries.get_card(card_id)
    new = edit_plan(card_id, user=request.member.user, calls=_calls(request, card))
    return show(request, queries.get_card(new.pk), anew=card) if request.htmx else redirect("console-card", new.pk)


def _form(request: StaffRequest, card: Card, *, status: int = 200, **shown: Any) -> HttpResponseBase:
    fields = [
        {"tool": call["tool"], "fields": _fields(request, place, call["args"])}
        for place, call in enumerate(card.details["calls"])
    ]
    response = page(request, "console/edit.html", at="review", status=status, card=card, fields=fields, **shown)
    if status >= 400:
        response["X-Console-Refusal"] = "edit"
    return response


def _fields(request: StaffRequest, place: int, args: dict[str, Any]) -> list[Field]:
    return [_field(request, f"{place}.{number}", name, value) for number, (name, value) in enumerate(args.items())]


def _field(request: StaffRequest, name: str, label: str, value: Any) -> Field:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Field(name, label, request.POST.get(name, said))


def _calls(request: StaffRequest, card: Card) -> list[dict[str, Any]]:
    """The calls with the values of the form; a value keeps its kind, or the form is refused."""
    return [
        {
            "tool": call["tool"],
            "args": {
                name: _read(request, f"{place}.{number}", name, value)
                for number, (name, value) in enumerate(call["args"].items())
            },
        }
        for place, call in enumerate(card.details.get("calls", ()))
    ]


def _read(request: StaffRequest, field: str, name: str, was: Any) -> Any:
    said = request.POST.get(field)
    if said is None:
        return was
    if isinstance(was, str):
        return said.replace("\r\n", "\n")
    try:
        return json.loads(said)
    except ValueError:
        message = f"“{name.replace('_', ' ')}” is not a value of its kind."
        raise SilasError("edit_refused", message, status=409) from None
