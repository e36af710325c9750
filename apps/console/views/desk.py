"""What is done with a conversation besides answering, and what is kept ready for it: labels and canned replies."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.console.bulk import chosen, deed_of, told
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.views.inbox import after, list_address
from apps.console.views.pages import page
from apps.sessions.inbox import bulk, labels_and_replies, queries, rules, services
from apps.sessions.inbox.enums import Colour, Snooze
from apps.sessions.inbox.rules import VISITOR_NAME
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope


@require_POST
@staff_view(*ANSWERING_ROLES)
def resolve(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    services.resolve(session_id, request.member.user)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def reopen(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    services.reopen(session_id, request.member.user)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def snooze(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """One of the usual times, or the one that was typed; both in the tenant's zone."""
    choice = request.POST.get("until", "")
    if choice in Snooze.values:
        until = rules.snoozed_until(Snooze(choice), moment=timezone.localtime(now()))
    else:
        until = _typed(request.POST.get("at", ""))
    services.snooze(session_id, request.member.user, until=until.astimezone(UTC) if until else None)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def assign(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    given = request.POST.get("to", "")
    services.assign(session_id, request.member.user, to=_member(given) if given else None)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def mark(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """`on` or `off` is the label's id, as whichever the page showed last: two presses at once mean the same twice."""
    on = "on" in request.POST
    label = _uuid(request.POST.get("on" if on else "off", ""), "label")
    services.mark(session_id, request.member.user, label_id=label, on=on)
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def note(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    said = request.POST
    services.note(session_id, request.member.user, said.get("text", ""), nonce=said.get("once", ""))
    return after(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES, scoped=False)
def several(request: StaffRequest, session_id: UUID | None = None) -> HttpResponseBase:
    """One deed in each of the conversations that are ticked; `session_id` is the one that is open beside the list."""
    said, tenant = request.POST, request.member.tenant
    with tenant_scope(tenant):
        deed = deed_of(said, request.member.user, member=_member, moment=timezone.localtime(now()))
    messages.info(request, told(deed, bulk.in_each(tenant.pk, chosen(said.getlist("pick")), deed.do)))
    return redirect(list_address(request, session_id))


@require_safe
@staff_view()
def labels(request: StaffRequest) -> HttpResponseBase:
    return page(request, "console/labels.html", at="inbox", labels=queries.labels(), colours=Colour.choices)


@require_POST
@staff_view(*ANSWERING_ROLES)
def save_label(request: StaffRequest, label_id: UUID | None = None) -> HttpResponseBase:
    said = request.POST
    labels_and_replies.save_label(
        request.member.user, name=said.get("name", ""), colour=said.get("colour", ""), label_id=label_id
    )
    return redirect("console-labels")


@require_POST
@staff_view(*ANSWERING_ROLES)
def delete_label(request: StaffRequest, label_id: UUID) -> HttpResponseBase:
    labels_and_replies.delete_label(request.member.user, label_id)
    return redirect("console-labels")


@require_safe
@staff_view()
def replies(request: StaffRequest) -> HttpResponseBase:
    ready_ones = queries.canned_replies()
    return page(request, "console/replies.html", at="inbox", replies=ready_ones, visitor_name=VISITOR_NAME)


@require_POST
@staff_view(*ANSWERING_ROLES)
def save_reply(request: StaffRequest, reply_id: UUID | None = None) -> HttpResponseBase:
    said = request.POST
    labels_and_replies.save_reply(
        request.member.user, name=said.get("name", ""), text=said.get("text", ""), reply_id=reply_id
    )
    return redirect("console-replies")


@require_POST
@staff_view(*ANSWERING_ROLES)
def delete_reply(request: StaffRequest, reply_id: UUID) -> HttpResponseBase:
    labels_and_replies.delete_reply(request.member.user, reply_id)
    return redirect("console-replies")


def _typed(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SilasError("bad_time", "Choose until when.") from None
    return moment if moment.tzinfo else timezone.make_aware(moment)


def _member(text: str) -> object:
    found = next((user for user in queries.answering_members() if str(user.pk) == text), None)
    if found is None:
        raise SilasError("assignee_unfit", "That person could not answer here.", status=409)
    return found


def _uuid(text: str, word: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(word) from None
