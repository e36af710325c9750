"""Ask the visitor: the form with a preview of the card, and withdrawing a card that is not answered yet."""

from __future__ import annotations

import json
from uuid import UUID

from django.http.response import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_http_methods, require_POST

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.filters import list_query, query_string
from apps.console.pages.inbox.question_forms import FIELDS_OF_KIND, ROWS_SHOWN_AT_FIRST, AskForm, row_names, rows_of
from apps.console.pages.inbox.views import list_address, to_conversation
from apps.sessions import queries
from apps.visitors import prompts
from apps.visitors.prompt_forms import MOST_FIELDS
from kernel.errors import SilasError

# The fields in order, with the kinds that show them.
PARTS = (
    ("choice yes form", ("question", "rationale")),
    ("choice", ("answers", "own_words")),
    ("yes", ("yes", "no")),
    ("choice yes", ("risk",)),
    ("secret", FIELDS_OF_KIND["secret"]),
    ("choice yes form secret", ("seconds",)),
)


def _refused(request: StaffRequest, refusal: SilasError, session_id: UUID) -> HttpResponseBase:
    """Show a conflict (a colleague took over, too many open cards) in the form, with everything that was typed."""
    form = AskForm(request.POST)
    form.is_valid()
    form.add_error(None, refusal.message)
    return _asking(request, session_id, form, status=refusal.status)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES, on_conflict=_refused)
def ask(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Send the request to the visitor; with `look`, only render the preview."""
    if request.method != "POST":
        return _asking(request, session_id, AskForm())
    form = AskForm(request.POST)
    if "look" in request.POST:
        return _asking(request, session_id, form, quietly=True)
    if not form.is_valid():
        return _asking(request, session_id, form, status=422)
    user, nonce = request.member.user, request.POST.get("once", "")[:64]
    prompts.ask_visitor(session_id, form.request, actor=user.actor, user=user, name=user.display_name, nonce=nonce)
    return _back(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def take_back(request: StaffRequest, session_id: UUID, card_id: UUID) -> HttpResponseBase:
    prompts.withdraw(card_id, session_id, actor=request.member.user.actor, user=request.member.user)
    return to_conversation(request, session_id)


def _back(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Return to the conversation; from within the dialog only the main part of the page is loaded."""
    if not request.htmx:
        return to_conversation(request, session_id)
    there = {
        "path": list_address(request, session_id),
        "target": "#main",
        "select": "#main",
        "swap": "outerHTML",
    }
    return HttpResponse(status=204, headers={"HX-Location": json.dumps(there)})


def _asking(
    request: StaffRequest, session_id: UUID, form: AskForm, *, status: int = 200, quietly: bool = False
) -> HttpResponseBase:
    """Render the form. `quietly` leaves out errors while the member is still typing."""
    fields = AskForm(initial=_typed(request)) if quietly else form
    once = {"once": request.POST["once"]} if request.POST.get("once") else {}
    query = list_query(request.GET)
    response = page(
        request,
        "console/ask.html",
        at="inbox",
        status=status,
        opened=queries.session_by_id(session_id),
        form=fields,
        parts=[(kinds, [fields[name] for name in names]) for kinds, names in PARTS],
        rows=[[fields[name] for name in row_names(number)] for number in range(1, MOST_FIELDS + 1)],
        shown_rows=ROWS_SHOWN_AT_FIRST,
        more_rows=any(number > ROWS_SHOWN_AT_FIRST for number, _ in rows_of(form.typed)),
        preview=form.preview,
        place=query_string(query, before=query.before),
        **once,
    )
    if status >= 400:
        response["X-Console-Refusal"] = "not_asked"
    return response


def _typed(request: StaffRequest) -> dict[str, object]:
    ticks = ["own_words", *(f"required_{number}" for number in range(1, MOST_FIELDS + 1))]
    return request.POST.dict() | {name: name in request.POST for name in ticks}
