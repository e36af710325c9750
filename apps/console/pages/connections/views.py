"""Connections: the connected accounts, and connecting one step by step.

A worker runs the set-up; the page reloads its state every two seconds, so it needs no socket. Secrets are never part of
these pages: secret.js sends them directly to `/secrets/`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import quote, urlencode
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.approvals.queries import open_cards_about
from apps.connections import queries, rules
from apps.connections.enums import SetupState
from apps.connections.models import Connection, ItRequest, PendingSecret, SetupRun
from apps.connections.services import it_requests, lifecycle, recovery, requests
from apps.connections.services.setup_state import parse_failure
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.connections import forms
from apps.work.services import outgoing_mail
from kernel.clock import now
from kernel.errors import SilasError
from kernel.stored_texts import stored_text

SHOWN = 200


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    rows = queries.connections()[:SHOWN]
    skills = [{"row": skill, "title": forms.title_of(skill.manifest)} for skill in forms.connection_skills()]
    undecided = rules.ambiguous_accounts(queries.accounts())
    return page(request, "console/connections.html", at="connections", rows=rows, skills=skills, undecided=undecided)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def new(request: StaffRequest, name: str) -> HttpResponseBase:
    """Ask for the skill's settings, then request approval for the connection."""
    _, manifest = forms.connection_skill(name)
    refusal = None
    if request.method == "POST":
        try:
            row, _ = requests.request_connection(
                forms.request_from(manifest, request.POST),
                user=request.member.user,
                actor=_actor(request),
                callback=request.build_absolute_uri(reverse("connections-callback")),
            )
            return redirect("console-connection", row.pk)
        except SilasError as error:
            refusal = error
    permissions = [*manifest.initial_permissions, *manifest.available_permissions]
    return page(
        request,
        "console/connection_new.html",
        at="connections",
        status=422 if refusal else 200,
        manifest=manifest,
        title=forms.title_of(manifest.model_dump()),
        settings=[
            (setting, request.POST.get(f"setting-{setting.name}", "")) for setting in forms.settings_of(manifest)
        ],
        permissions=list(dict.fromkeys(permissions)),
        chosen=request.POST.getlist("permission") or manifest.initial_permissions,
        given=request.POST.get("name", ""),
        refusal=refusal,
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def connection(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _render(request, queries.connection(connection_id))


@require_POST
@staff_view(*DECIDING_ROLES)
def cancel(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _act(request, connection_id, lifecycle.cancel)


@require_POST
@staff_view(*DECIDING_ROLES)
def done(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """The member entered the code: the script can ask the service now instead of waiting."""
    answer = partial(lifecycle.answer, step_id=request.POST.get("step_id", ""), action="done")
    return _act(request, connection_id, answer)


@require_safe
@staff_view(*DECIDING_ROLES)
def sign_in(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """Go to the service; only this browser may return from there."""
    browser = request.session.session_key or ""
    try:
        address = lifecycle.open_redirect(connection_id, user=request.member.user, browser=browser)
    except SilasError as refusal:
        return _render(request, queries.connection(connection_id), refusal)
    response = redirect(address)
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_POST
@staff_view(*DECIDING_ROLES)
def reconnect(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _act(request, connection_id, requests.reconnect)


@require_POST
@staff_view(*DECIDING_ROLES)
def pause(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _act(request, connection_id, lifecycle.pause)


@require_POST
@staff_view(*DECIDING_ROLES)
def resume(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _act(request, connection_id, lifecycle.resume)


@require_POST
@staff_view(*DECIDING_ROLES)
def choose(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _act(request, connection_id, lifecycle.choose)


@require_POST
@staff_view(*DECIDING_ROLES)
def remove(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    lifecycle.remove(connection_id, user=request.member.user, actor=_actor(request))
    return redirect("console-connections")


@require_POST
@staff_view(*DECIDING_ROLES)
def widen(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """Request more permissions, which creates a card."""
    row = queries.connection(connection_id)
    try:
        permissions = [*row.permissions_granted, *request.POST.getlist("permission")]
        card = requests.open_escalation_card(row, permissions, stored_text("Requested in the console."))
    except SilasError as refusal:
        return _render(request, row, refusal)
    return redirect("console-card", card.pk) if card else redirect("console-connection", row.pk)


@require_POST
@staff_view(*DECIDING_ROLES)
def it_request(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """Save the message; sending it is work that needs approval."""
    row = queries.connection(connection_id)
    written = {name: request.POST.get(name, "") for name in ("to", "subject", "text")}
    try:
        saved = it_requests.update(row.pk, **written, user=request.member.user, actor=_actor(request))
        if request.POST.get("act") != "send":
            return redirect("console-connection", row.pk)
        item = outgoing_mail.propose_mail(
            to=saved.to,
            subject=saved.subject,
            text=saved.text,
            why=f"{row.name} needs it.",
            requested_by=_actor(request),
        )
    except SilasError as refusal:
        return _render(request, row, refusal)
    it_requests.set_work_item(saved, item.pk)
    return redirect("console-work-item", item.pk)


def _mailto(written: ItRequest) -> str:
    """Return the `mailto:` address that opens the message in the member's mail app."""
    query = urlencode({"subject": written.subject, "body": written.text}, quote_via=quote)
    return f"mailto:{quote(written.to)}?{query}"


def _act(request: StaffRequest, connection_id: UUID, action: Callable[..., object]) -> HttpResponseBase:
    row = queries.connection(connection_id)
    try:
        action(row.pk, user=request.member.user, actor=_actor(request))
    except SilasError as refusal:
        return _render(request, row, refusal)
    return redirect("console-connection", row.pk)


def _render(request: StaffRequest, row: Connection, refusal: SilasError | None = None) -> HttpResponseBase:
    setup = queries.setups(row.pk).first()
    busy = setup is not None and SetupState(setup.state) in rules.UNDER_WAY
    accounts, letter = queries.accounts(), queries.it_request(row.pk)
    waiting = open_cards_about(row.pk, requests.CONNECTION, recovery.BROKEN).first()
    return page(
        request,
        "console/connection.html",
        at="connections",
        status=refusal.status if refusal else 200,
        row=row,
        setup=setup,
        busy=busy,
        typing=_wants_secret(setup) if busy else letter is not None,
        expired=busy and _is_too_late(setup),
        code_ends=_code_ends(setup),
        broken=_problem(row),
        it_request=letter,
        mail_address=_mailto(letter) if letter else "",
        can_send=bool(letter) and outgoing_mail.can_send(),
        card=waiting,
        undecided=row.pk in rules.ambiguous_accounts(accounts),
        has_rivals=sum(account.skill == row.skill_name for account in accounts) > 1,
        was_connected=any(account.id == row.pk for account in accounts),
        more=rules.missing([*row.initial_permissions, *row.permissions_available], row.permissions_granted),
        refusal=refusal,
    )


def _wants_secret(setup: SetupRun | None) -> bool:
    """True while the page shows a field for a secret, in which the member may be typing."""
    row = _pending(setup)
    return row is not None and row.stored_at is None and not _is_too_late(setup)


def _is_too_late(setup: SetupRun | None) -> bool:
    row = _pending(setup)
    return row is not None and row.stored_at is None and min(row.expires_at, row.setup.deadline) <= now()


def _pending(setup: SetupRun | None) -> PendingSecret | None:
    step = (setup.step if setup else None) or {}
    if step.get("type") != "secure_input":
        return None
    row: PendingSecret | None = (
        PendingSecret.objects.filter(pk=step["request"]["ref_id"]).select_related("setup").first()
    )
    return row


def _code_ends(setup: SetupRun | None) -> datetime | None:
    """Return when the shown code expires."""
    step = (setup.step if setup else None) or {}
    if step.get("type") != "device_code" or not step.get("shown_at"):
        return None
    return datetime.fromisoformat(step["shown_at"]) + timedelta(seconds=step["expires_in"])


def _problem(row: Connection) -> str:
    """Return what is wrong in the platform's own words, because a script's text is not trusted."""
    if not row.failure:
        return ""
    return str(rules.failure_payload(parse_failure(row.failure), row.name)["message"])


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
