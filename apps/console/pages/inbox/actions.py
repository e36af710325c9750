"""Actions on conversations: resolve, snooze, assign, label and note; and the pages of labels and canned replies."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.bulk import action_from, result_message, selected_ids
from apps.console.pages.inbox.views import list_address, to_conversation
from apps.inbox import bulk, labels_and_replies, queries, reading, rules, services
from apps.inbox.enums import Colour, Snooze
from apps.inbox.rules import VARIABLES
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope


@require_POST
@staff_view(*ANSWERING_ROLES)
def resolve(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    services.resolve(session_id, request.member.user)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def reopen(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    services.reopen(session_id, request.member.user)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def snooze(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Snooze until a preset time or the entered one, both in the tenant's time zone."""
    choice = request.POST.get("until", "")
    if choice in Snooze.values:
        until = rules.snoozed_until(Snooze(choice), moment=timezone.localtime(now()))
    else:
        until = _typed(request.POST.get("at", ""))
    services.snooze(session_id, request.member.user, until=until.astimezone(UTC) if until else None)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def assign(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    given = request.POST.get("to", "")
    services.assign(session_id, request.member.user, to=queries.answering_member(given) if given else None)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def mark(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Add (`on`) or remove (`off`) a label by its id. Repeating the same request changes nothing."""
    on = "on" in request.POST
    label = require_id(request.POST.get("on" if on else "off", ""))
    services.mark(session_id, request.member.user, label_id=label, on=on)
    return to_conversation(request, session_id)


@require_POST
@staff_view()
def mark_unread(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Mark the visitor's last message as unread for this member, and close the conversation."""
    reading.mark_unread(session_id, request.member.user)
    return redirect(list_address(request, None))


@require_POST
@staff_view(*ANSWERING_ROLES)
def note(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    text, nonce = request.POST.get("text", ""), request.POST.get("once", "")
    services.note(session_id, request.member.user, text, nonce=nonce)
    return to_conversation(request, session_id)


@require_POST
@staff_view(*ANSWERING_ROLES, scoped=False)
def several(request: StaffRequest, session_id: UUID | None = None) -> HttpResponseBase:
    """Run one action on every selected conversation; `session_id` is the one open beside the list."""
    tenant, moment = request.member.tenant, timezone.localtime(now())
    with tenant_scope(tenant):
        action = action_from(request.POST, request.member.user, find_member=queries.answering_member, moment=moment)
    outcome = bulk.in_each(tenant.pk, selected_ids(request.POST.getlist("pick")), action.run)
    messages.info(request, result_message(action, outcome))
    return redirect(list_address(request, session_id))


@require_safe
@staff_view()
def labels(request: StaffRequest) -> HttpResponseBase:
    return page(request, "console/labels.html", at="inbox", labels=queries.labels(), colours=Colour.choices)


@require_POST
@staff_view(*ANSWERING_ROLES)
def save_label(request: StaffRequest, label_id: UUID | None = None) -> HttpResponseBase:
    name, colour = request.POST.get("name", ""), request.POST.get("colour", "")
    labels_and_replies.save_label(request.member.user, name=name, colour=colour, label_id=label_id)
    return redirect("console-labels")


@require_POST
@staff_view(*ANSWERING_ROLES)
def delete_label(request: StaffRequest, label_id: UUID) -> HttpResponseBase:
    labels_and_replies.delete_label(request.member.user, label_id)
    return redirect("console-labels")


@require_safe
@staff_view()
def replies(request: StaffRequest) -> HttpResponseBase:
    rows = queries.canned_replies()
    return page(request, "console/replies.html", at="inbox", replies=rows, variables=VARIABLES)


@require_POST
@staff_view(*ANSWERING_ROLES)
def save_reply(request: StaffRequest, reply_id: UUID | None = None) -> HttpResponseBase:
    name, text = request.POST.get("name", ""), request.POST.get("text", "")
    labels_and_replies.save_reply(request.member.user, name=name, text=text, reply_id=reply_id)
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
        raise SilasError(ErrorCode.BAD_TIME, _("Choose a date and time.")) from None
    return moment if moment.tzinfo else timezone.make_aware(moment)
