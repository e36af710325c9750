"""What do we want the visitor to press, or to give in secret? Written beside a preview of what they would see, and
taken back as long as they have not answered."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.http.response import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.asked import address_part, asked_by
from apps.console.asking_forms import OWN, AskForm
from apps.console.asking_rows import SHOWN_AT_FIRST, row_names, rows_of
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.views.inbox import after, conversation_address
from apps.console.views.pages import page
from apps.sessions import prompts, queries
from apps.sessions.prompt_forms import MOST_FIELDS
from kernel.errors import SilasError

# Which fields are shown for which kinds, in order.
PARTS = (
    ("choice yes form", ("question", "rationale")),
    ("choice", ("answers", "own_words")),
    ("yes", ("yes", "no")),
    ("choice yes", ("risk",)),
    ("secret", OWN["secret"]),
    ("choice yes form secret", ("seconds",)),
)


def _refused(request: StaffRequest, refusal: SilasError, session_id: UUID) -> HttpResponseBase:
    """A colleague answers by now, or enough is asked: said where it was written, and nothing of it is lost."""
    form = AskForm(request.POST)
    form.is_valid()
    form.add_error(None, refusal.message)
    return _asking(request, session_id, form, status=refusal.status)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES, on_conflict=_refused)
def ask(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """`look`: only show what it would be like."""
    if request.method != "POST":
        return _asking(request, session_id, AskForm())
    form = AskForm(request.POST)
    if "look" in request.POST:
        return _asking(request, session_id, form, quietly=True)
    if not form.is_valid():
        return _asking(request, session_id, form, status=422)
    user, nonce = request.member.user, request.POST.get("once", "")[:64]
    prompts.ask_visitor(session_id, form.asked, actor=user.actor, user=user, name=user.display_name, nonce=nonce)
    return _back(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def take_back(request: StaffRequest, session_id: UUID, card_id: UUID) -> HttpResponseBase:
    prompts.withdraw(card_id, session_id, actor=request.member.user.actor, user=request.member.user)
    return after(request, session_id)


def _back(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """To the conversation: the whole page, or the page's main part from within the dialog."""
    if not request.htmx:
        return after(request, session_id)
    there = {
        "path": conversation_address(request, session_id),
        "target": "#main",
        "select": "#main",
        "swap": "outerHTML",
    }
    return HttpResponse(status=204, headers={"HX-Location": json.dumps(there)})


def _asking(
    request: StaffRequest, session_id: UUID, form: AskForm, *, status: int = 200, quietly: bool = False
) -> HttpResponseBase:
    """`quietly`: somebody is still writing, so that nothing is said of what is not there yet."""
    fields = AskForm(initial=_typed(request)) if quietly else form
    once = {"once": request.POST["once"]} if request.POST.get("once") else {}
    asked = asked_by(request.GET)
    response = page(
        request,
        "console/ask.html",
        at="inbox",
        status=status,
        opened=queries.session_by_id(session_id),
        form=fields,
        parts=[(kinds, [fields[name] for name in names]) for kinds, names in PARTS],
        rows=_rows(fields),
        shown_rows=SHOWN_AT_FIRST,
        more_rows=any(number > SHOWN_AT_FIRST for number, _ in rows_of(form.typed)),
        preview=form.preview,
        place=address_part(asked, before=asked.before),
        **once,
    )
    if status >= 400:
        response["X-Console-Refusal"] = "not_asked"
    return response


def _rows(form: AskForm) -> list[list[Any]]:
    return [[form[name] for name in row_names(number)] for number in range(1, MOST_FIELDS + 1)]


def _typed(request: StaffRequest) -> dict[str, object]:
    ticks = ["own_words", *(f"required_{number}" for number in range(1, MOST_FIELDS + 1))]
    return request.POST.dict() | {name: name in request.POST for name in ticks}
