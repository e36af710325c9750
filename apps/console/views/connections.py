"""Which outside accounts are connected, how are they, and how is one connected? A conversation held by a worker, shown
here step by step; it is read anew every two seconds while it is under way, so it needs no line.

Deciders connect and look; nothing secret is ever part of these pages (secret.js takes it straight to `/secrets/`).
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
from apps.console import connecting
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from apps.work.services import outgoing_mail
from kernel.clock import now
from kernel.errors import SilasError

SHOWN = 200


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    rows = queries.connections()[:SHOWN]
    skills = [{"row": each, "title": connecting.title_of(each.manifest)} for each in connecting.connection_skills()]
    undecided = rules.ambiguous_accounts(queries.accounts())
    return page(request, "console/connections.html", at="connections", rows=rows, skills=skills, undecided=undecided)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def new(request: StaffRequest, name: str) -> HttpResponseBase:
    """What the skill wants to know; sent, it becomes a card that somebody has to say yes to."""
    _, manifest = connecting.connection_skill(name)
    refusal = None
    if request.method == "POST":
        try:
            row, _ = requests.request_connection(
                connecting.wanted(manifest, request.POST),
                user=request.member.user,
                actor=_actor(request),
                callback=request.build_absolute_uri(reverse("connections-callback")),
            )
            return redirect("console-connection", row.pk)
        except SilasError as error:
            refusal = error
    asked = [*manifest.initial_permissions, *manifest.available_permissions]
    return page(
        request,
        "console/connection_new.html",
        at="connections",
        status=422 if refusal else 200,
        manifest=manifest,
        title=connecting.title_of(manifest.model_dump()),
        settings=[(each, request.POST.get(f"setting-{each.name}", "")) for each in connecting.settings_of(manifest)],
        permissions=list(dict.fromkeys(asked)),
        chosen=request.POST.getlist("permission") or manifest.initial_permissions,
        given=request.POST.get("name", ""),
        refusal=refusal,
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def connection(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _shown(request, queries.connection(connection_id))


@require_POST
@staff_view(*DECIDING_ROLES)
def cancel(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _done(request, connection_id, lifecycle.cancel)


@require_POST
@staff_view(*DECIDING_ROLES)
def done(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """The code was entered: the script need not wait until it would ask the service by itself."""
    answer = partial(lifecycle.answer, step_id=request.POST.get("step_id", ""), action="done")
    return _done(request, connection_id, answer)


@require_safe
@staff_view(*DECIDING_ROLES)
def sign_in(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """To the service, in this browser: only the one that went may come back."""
    browser = request.session.session_key or ""
    try:
        address = lifecycle.open_redirect(connection_id, user=request.member.user, browser=browser)
    except SilasError as refusal:
        return _shown(request, queries.connection(connection_id), refusal)
    response = redirect(address)
    response["Referrer-Policy"] = "no-referrer"
    return response


@require_POST
@staff_view(*DECIDING_ROLES)
def reconnect(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _done(request, connection_id, requests.reconnect)


@require_POST
@staff_view(*DECIDING_ROLES)
def pause(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _done(request, connection_id, lifecycle.pause)


@require_POST
@staff_view(*DECIDING_ROLES)
def resume(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _done(request, connection_id, lifecycle.resume)


@require_POST
@staff_view(*DECIDING_ROLES)
def choose(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    return _done(request, connection_id, lifecycle.choose)


@require_POST
@staff_view(*DECIDING_ROLES)
def remove(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    lifecycle.remove(connection_id, user=request.member.user, actor=_actor(request))
    return redirect("console-connections")


@require_POST
@staff_view(*DECIDING_ROLES)
def widen(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """Asking is one thing, the yes another: it becomes a card."""
    row = queries.connection(connection_id)
    try:
        wanted = [*row.permissions_granted, *request.POST.getlist("permission")]
        card = requests.open_escalation_card(row, wanted, "Somebody asked for it on the page.")
    except SilasError as refusal:
        return _shown(request, row, refusal)
    return redirect("console-card", card.pk) if card else redirect("console-connection", row.pk)


@require_POST
@staff_view(*DECIDING_ROLES)
def it_request(request: StaffRequest, connection_id: UUID) -> HttpResponseBase:
    """Kept as it was written; sent only by work that somebody says yes to."""
    row = queries.connection(connection_id)
    written = {name: request.POST.get(name, "") for name in ("to", "subject", "text")}
    try:
        kept = it_requests.update(row.pk, **written, user=request.member.user, actor=_actor(request))
        if request.POST.get("act") != "send":
            return redirect("console-connection", row.pk)
        item = outgoing_mail.propose_mail(
            to=kept.to, subject=kept.subject, text=kept.text, why=f"{row.name} needs it.", requested_by=_actor(request)
        )
    except SilasError as refusal:
        return _shown(request, row, refusal)
    it_requests.set_work_item(kept, item.pk)
    return redirect("console-work-item", item.pk)


def _mail_address(written: ItRequest) -> str:
    """What opens the person's own mail program with the message in it."""
    said = urlencode({"subject": written.subject, "body": written.text}, quote_via=quote)
    return f"mailto:{quote(written.to)}?{said}"


def _done(request: StaffRequest, connection_id: UUID, deed: Callable[..., object]) -> HttpResponseBase:
    row = queries.connection(connection_id)
    try:
        deed(row.pk, user=request.member.user, actor=_actor(request))
    except SilasError as refusal:
        return _shown(request, row, refusal)
    return redirect("console-connection", row.pk)


def _shown(request: StaffRequest, row: Connection, refusal: SilasError | None = None) -> HttpResponseBase:
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
        broken=_what_is_wrong(row),
        it_request=letter,
        mail_address=_mail_address(letter) if letter else "",
        can_send=bool(letter) and outgoing_mail.can_send(),
        card=waiting,
        undecided=row.pk in rules.ambiguous_accounts(accounts),
        has_rivals=sum(account.skill == row.skill_name for account in accounts) > 1,
        was_connected=any(account.id == row.pk for account in accounts),
        more=rules.missing([*row.initial_permissions, *row.permissions_available], row.permissions_granted),
        refusal=refusal,
    )


def _wants_secret(setup: SetupRun | None) -> bool:
    """Is a field shown in which somebody may be typing? What was stored already is being tried."""
    row = _pending(setup)
    return row is not None and row.stored_at is None and not _is_too_late(setup)


def _is_too_late(setup: SetupRun | None) -> bool:
    row = _pending(setup)
    return row is not None and row.stored_at is None and min(row.expires_at, row.setup.deadline) <= now()


def _pending(setup: SetupRun | None) -> PendingSecret | None:
    step = (setup.step if setup else None) or {}
    if step.get("type") != "secure_input":
        return None
    found: PendingSecret | None = (
        PendingSecret.objects.filter(pk=step["request"]["ref_id"]).select_related("setup").first()
    )
    return found


def _code_ends(setup: SetupRun | None) -> datetime | None:
    """When the code that is shown is worth nothing any more."""
    step = (setup.step if setup else None) or {}
    if step.get("type") != "device_code" or not step.get("shown_at"):
        return None
    return datetime.fromisoformat(step["shown_at"]) + timedelta(seconds=step["expires_in"])


def _what_is_wrong(row: Connection) -> str:
    """In the platform's own words: what a script says of itself could say anything."""
    if not row.failure:
        return ""
    return str(rules.failure_payload(parse_failure(row.failure), row.name)["message"])


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
