"""Channels: what a chatbot is reached by beside the widget. Add one, check its connection, see what came and went.

For owners. Secrets are entered and never shown again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.messengers import ports, queries, services
from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel
from apps.tenants.enums import Capability
from apps.tenants.queries import list_deployments
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.language import gettext_lazy as _
from kernel.tenancy import tenant_scope

MOST_DEPLOYMENTS = 200
FIELD_PROBLEMS = {
    "required": _("Enter a value."),
    "invalid": _("This value isn't valid."),
    "too_short": _("This value is too short."),
    "too_long": _("This value is too long."),
    "unknown": _("This setting doesn't exist."),
}
PROBLEMS = {
    "automatic": _("An automatic answer or a newsletter, not a person"),
    "bounce": _("A report about an email that couldn't be delivered"),
    "bounced": _("The email couldn't be delivered"),
    "channel_off": _("The channel or its chatbot was turned off"),
    "choice_over": _("The answer came after the question was closed"),
    "consent_asked": _("Asked for consent first"),
    "consent_given": _("Consent given"),
    "continued": _("Continued a conversation of the widget"),
    "empty": _("A message without content"),
    "files_refused": _("Some files weren't accepted"),
    "forged_sender": _("Your mail server found that the sender was forged"),
    "imap_address_refused": _("The IMAP server's address isn't allowed"),
    "imap_login_refused": _("The IMAP server refused the user or the password"),
    "imap_no_folder": _("The folder doesn't exist"),
    "imap_timeout": _("The IMAP server didn't answer in time"),
    "imap_tls_failed": _("The IMAP server's certificate isn't trusted"),
    "imap_unreachable": _("The IMAP server can't be reached"),
    "login_refused": _("The server refused the user or the password"),
    "no_mail_server": _("No mail server is set up"),
    "no_sender": _("An email without exactly one sender"),
    "not_delivered": _("Given up after several attempts"),
    "not_taken_in": _("The message couldn't be received"),
    "opted_in": _("Subscribed again"),
    "opted_out": _("Unsubscribed"),
    "outcome_unknown": _("It isn't known whether the message arrived; it wasn't sent again"),
    "own_mail": _("Sent by this channel itself"),
    "rate_limited": _("Too many messages in a short time"),
    "recipient_refused": _("The recipient's server refused the email"),
    "smtp_login_refused": _("The SMTP server refused the user or the password"),
    "smtp_timeout": _("The SMTP server didn't answer in time"),
    "smtp_tls_failed": _("The SMTP server's certificate isn't trusted"),
    "smtp_unreachable": _("The SMTP server can't be reached"),
    "timeout": _("The provider didn't answer in time"),
    "too_large": _("The message is too large"),
    "unauthorized": _("The provider refused the token"),
    "unreachable": _("The provider can't be reached"),
    "unreadable": _("The email couldn't be read"),
    "window_closed": _("The person hasn't written in the last 24 hours, and no template is set"),
}


@require_safe
@staff_view(Capability.ADMINISTER)
def listing(request: StaffRequest) -> HttpResponseBase:
    rows = [(row, _problem(row.problem)) for row in queries.channels()]
    kinds = [(adapter.kind.value, adapter.kind.label) for adapter in ports.adapters()]
    return page(request, "console/channels.html", at="channels", rows=rows, kinds=kinds)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def new(request: StaffRequest, kind: str) -> HttpResponseBase:
    adapter = _adapter(kind)
    if request.method != "POST":
        return _form(request, adapter)
    deployment_id = require_id(request.POST.get("deployment", ""))
    try:
        row = services.add_channel(
            adapter.kind,
            deployment_id=deployment_id,
            name=request.POST.get("name", ""),
            values=_values(request, adapter),
            actor=request.member.user.actor,
        )
    except SilasError as refusal:
        return _form(request, adapter, refusal)
    return redirect("console-channel", row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def channel(request: StaffRequest, channel_id: UUID) -> HttpResponseBase:
    row = queries.channel(channel_id)
    if request.method != "POST":
        return _render(request, row)
    try:
        values = _values(request, ports.adapter_of(row.kind))
        name, actor = request.POST.get("name", ""), request.member.user.actor
        services.change_channel(row.pk, actor=actor, name=name, values=values)
    except SilasError as refusal:
        return _render(request, row, refusal=refusal)
    return redirect("console-channel", row.pk)


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def check(request: StaffRequest, channel_id: UUID) -> HttpResponseBase:
    """Check the connection, outside of any scope because the provider is called."""
    with tenant_scope(request.member.tenant):
        webhook = _webhook(request, queries.channel(channel_id))
    connect = async_to_sync(services.connect)
    return _called(
        request,
        channel_id,
        lambda: connect(request.member.tenant.pk, channel_id, webhook=webhook, actor=request.member.user.actor),
        done=_("The connection works."),
    )


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def send_test(request: StaffRequest, channel_id: UUID) -> HttpResponseBase:
    send = async_to_sync(services.send_test)
    peer, actor = request.POST.get("recipient", ""), request.member.user.actor
    return _called(
        request,
        channel_id,
        lambda: send(request.member.tenant.pk, channel_id, peer=peer, actor=actor),
        done=_("The test message was sent."),
    )


@require_POST
@staff_view(Capability.ADMINISTER)
def switch(request: StaffRequest, channel_id: UUID) -> HttpResponseBase:
    enabled = request.POST.get("enabled") == "1"
    services.change_channel(channel_id, actor=request.member.user.actor, enabled=enabled)
    return redirect("console-channel", channel_id)


@require_POST
@staff_view(Capability.ADMINISTER)
def remove(request: StaffRequest, channel_id: UUID) -> HttpResponseBase:
    services.remove_channel(channel_id, actor=request.member.user.actor)
    return redirect("console-channels")


def _called(request: StaffRequest, channel_id: UUID, call: Any, *, done: Any) -> HttpResponseBase:
    refusal = None
    try:
        call()
    except SilasError as error:
        refusal = error
    with tenant_scope(request.member.tenant):
        row = queries.channel(channel_id)
        response = _render(request, row, call_refusal=refusal, done="" if refusal else done)
        return response.render() if isinstance(response, TemplateResponse) else response


def _adapter(kind: str) -> ports.Adapter:
    found = next((adapter for adapter in ports.adapters() if adapter.kind == kind), None)
    if found is None:
        raise NotFound()
    return found


def _values(request: StaffRequest, adapter: ports.Adapter) -> dict[str, str]:
    return {field.name: request.POST.get(field.name, "") for field in adapter.settings}


def _fields(
    adapter: ports.Adapter, given: Mapping[str, Any], refusal: SilasError | None, *, stored: bool
) -> list[dict[str, object]]:
    """The fields of the form with their values and problems; secrets are never filled in."""
    problems = refusal.extra.get("fields", {}) if refusal else {}
    return [
        {
            "setting": field,
            "value": "" if field.secret else given.get(field.name, "") or field.default,
            "problem": FIELD_PROBLEMS.get(problems[field.name], problems[field.name]) if field.name in problems else "",
            "stored": stored and field.secret,
        }
        for field in adapter.settings
    ]


def _form(request: StaffRequest, adapter: ports.Adapter, refusal: SilasError | None = None) -> HttpResponseBase:
    deployments, _more = list_deployments(before="", limit=MOST_DEPLOYMENTS)
    return page(
        request,
        "console/channel_new.html",
        at="channels",
        status=refusal.status if refusal else 200,
        kind=adapter.kind.value,
        label=adapter.kind.label,
        steps=adapter.steps({}, _("the address shown after saving")),  # type: ignore[arg-type]  # shown as text
        deployments=deployments,
        fields=_fields(adapter, request.POST.dict(), refusal, stored=False),
        given=request.POST,
        refusal=refusal,
    )


def _render(
    request: StaffRequest,
    row: Channel,
    *,
    refusal: SilasError | None = None,
    call_refusal: SilasError | None = None,
    done: Any = "",
) -> HttpResponseBase:
    adapter, webhook = ports.adapter_of(row.kind), _webhook(request, row)
    health = queries.health(row.pk)
    given = request.POST.dict() if refusal else {**row.settings, "name": row.name}
    reason = _problem(str(call_refusal.extra.get("reason", ""))) if call_refusal else ""
    return page(
        request,
        "console/channel.html",
        at="channels",
        status=refusal.status if refusal else 200,
        row=row,
        label=ChannelKind(row.kind).label,
        webhook=webhook,
        steps=adapter.steps(row.settings, webhook),
        fields=_fields(adapter, given, refusal, stored=bool(row.sealed)),
        given=given,
        refusal=refusal,
        call_refusal=call_refusal,
        reason=reason,
        done=done,
        problem=_problem(row.problem),
        health=health,
        problems=[(each, _problem(each.problem)) for each in health.problems],
    )


def _problem(code: str) -> object:
    """The sentence for a problem's code; the code itself for a provider's own."""
    return PROBLEMS.get(code, code)


def _webhook(request: StaffRequest, row: Channel) -> str:
    return request.build_absolute_uri(reverse("channel-webhook", args=[row.kind, row.public_id]))
