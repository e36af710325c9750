"""Assistance in the inbox: ask for it, cancel it, and see what its model saw. The answers are parts of the page."""

from __future__ import annotations

from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.copilot import forms, queries, services
from apps.copilot.enums import REWRITES, AssistanceKind
from apps.copilot.schemas import AssistanceRequest, AssistanceResult
from apps.sessions.prompt_trace import seen_of
from apps.sessions.queries import session_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope

_READ = (AssistanceKind.SUMMARY, AssistanceKind.TRANSLATE_MESSAGE, AssistanceKind.BOT_PREVIEW)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES, scoped=False)
def assist(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Answer one request for assistance; on GET the menu, or with `result` the newest result of this member."""
    if request.method == "POST":
        return _answer(request, session_id)
    with tenant_scope(request.member.tenant):
        session = session_by_id(session_id)
        if "result" in request.GET:
            return _part(request, session_id, services.last_result(session_id, request.member.user))
        on = queries.kinds_on(session.deployment_id)
        groups = [
            (heading, [(kind.value, kind.label) for kind in kinds if kind in on])
            for heading, kinds in ((_("Understand"), _READ), (_("Change my draft"), REWRITES))
        ]
        return _private(
            render(
                request,
                "console/_copilot_menu.html",
                {
                    "groups": [group for group in groups if group[1]],
                    "forms": forms.forms_of(session) if AssistanceKind.FILL_FORM in on else [],
                },
            )
        )


@require_POST
@staff_view(*ANSWERING_ROLES)
def cancel(request: StaffRequest, session_id: UUID, assistance_id: UUID) -> HttpResponseBase:
    services.cancel(session_id, assistance_id, request.member.user)
    return HttpResponse(status=204)


@require_safe
@staff_view(*ANSWERING_ROLES)
def seen(request: StaffRequest, session_id: UUID, assistance_id: UUID) -> HttpResponseBase:
    asked = queries.assistance_by_id(session_id, assistance_id)
    window = seen_of(asked.session, asked.context) if asked.context else None
    return page(request, "console/assistance_seen.html", at="inbox", asked=asked, opened=asked.session, window=window)


def _answer(request: StaffRequest, session_id: UUID) -> HttpResponse:
    sent = request.POST
    try:
        if sent.get("kind") not in AssistanceKind.values:
            raise SilasError(ErrorCode.FORM_UNREADABLE)
        wanted = AssistanceRequest(
            AssistanceKind(sent["kind"]),
            sent.get("text", ""),
            sent.get("form", ""),
            (get_language() or "en")[:2],
            require_id(sent["id"]) if sent.get("id") else uuid4(),
        )
        result = async_to_sync(services.assist)(request.member.tenant.pk, session_id, request.member.user, wanted)
    except SilasError as refusal:
        return _private(render(request, "console/_assistance.html", {"refusal": refusal}, status=refusal.status))
    return _part(request, session_id, result)


def _part(request: StaffRequest, session_id: UUID, result: AssistanceResult | None) -> HttpResponse:
    kind = AssistanceKind(result.kind) if result else None
    context = {
        "session_id": session_id,
        "result": result,
        "label": kind.label if kind else "",
        "replaces": kind in REWRITES,
        "insertable": bool(result and result.text) and kind in (*REWRITES, AssistanceKind.SUGGEST),
    }
    return _private(render(request, "console/_assistance.html", context))


def _private(response: HttpResponse) -> HttpResponse:
    patch_cache_control(response, private=True, no_store=True)
    return response
