"""Tool servers (MCP), their tools, the terms on which a tool is accepted, and web search. For owners.

A server's descriptions are untrusted text: they are shown escaped and shortened, and a person accepts exactly the
description they saw, by its digest. The key of web search is never shown again.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.enums import Risk
from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.skills import queries as skills
from apps.tenants.enums import Capability
from apps.toolservers import queries, server_refresh, services
from apps.toolservers.enums import SearchProvider, ToolState
from apps.toolservers.models import OutsideTool, ToolServer
from apps.toolservers.schemas import Terms
from apps.toolservers.web import services as web_services
from apps.toolservers.web.calls import failure_message as search_sentence
from apps.toolservers.web.queries import web_search as search_setting
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_SHOWN_CHARS = 600
_EXPECTATIONS = [
    ("contains", gettext_lazy("contains")),
    ("equals", gettext_lazy("is exactly")),
    ("regex", gettext_lazy("matches")),
    ("output_gt", gettext_lazy("is greater than")),
]


@require_safe
@staff_view(Capability.ADMINISTER)
def listing(request: StaffRequest) -> HttpResponseBase:
    return _listing(request)


@require_POST
@staff_view(Capability.ADMINISTER)
def new(request: StaffRequest) -> HttpResponseBase:
    name, url = request.POST.get("name", "").strip(), request.POST.get("url", "").strip()
    try:
        server = services.add_server(
            name, url=url, secret=request.POST.get("secret", "").strip(), actor=_actor(request)
        )
    except SilasError as refusal:
        return _listing(request, refusal=refusal, given={"name": name, "url": url})
    return redirect("console-tool-server", server.pk)


@require_POST
@staff_view(Capability.ADMINISTER)
def new_program(request: StaffRequest) -> HttpResponseBase:
    sent = {name: request.POST.get(name, "").strip() for name in ("name", "skill", "script", "args", "places")}
    try:
        server = services.add_program(
            sent["name"],
            skill=sent["skill"],
            script=sent["script"],
            args=sent["args"].split(),
            places=sent["places"].split(),
            secret=request.POST.get("secret", "").strip(),
            actor=_actor(request),
        )
    except SilasError as refusal:
        return _listing(request, program_refusal=refusal, given={"program": sent})
    return redirect("console-tool-server", server.pk)


@require_safe
@staff_view(Capability.ADMINISTER)
def server(request: StaffRequest, server_id: UUID) -> HttpResponseBase:
    return _render(request, queries.server(server_id))


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def refresh(request: StaffRequest, server_id: UUID) -> HttpResponseBase:
    """Refresh the tools, outside of any scope because an external server is called."""
    refusal = None
    try:
        server_refresh.refresh_server(request.member.tenant.pk, server_id, actor=_actor(request))
    except SilasError as error:
        refusal = error
    with tenant_scope(request.member.tenant):
        row = queries.server(server_id)
        if refusal is not None:
            return _render(request, row, refusal).render()
    return redirect("console-tool-server", row.pk)


@require_POST
@staff_view(Capability.ADMINISTER)
def accept(request: StaffRequest, server_id: UUID, tool_id: UUID) -> HttpResponseBase:
    row, sent = queries.server(server_id), request.POST
    try:
        tool, by = queries.tool(row.pk, tool_id), request.member.user.pk
        services.accept_tool(tool.pk, _terms(sent), digest=sent.get("digest", ""), by=by, actor=_actor(request))
    except SilasError as refusal:
        return _render(request, row, refusal)
    return redirect("console-tool-server", row.pk)


@require_POST
@staff_view(Capability.ADMINISTER)
def suspend(request: StaffRequest, server_id: UUID, tool_id: UUID) -> HttpResponseBase:
    row = queries.server(server_id)
    services.suspend_tool(queries.tool(row.pk, tool_id).pk, actor=_actor(request))
    return redirect("console-tool-server", row.pk)


@require_POST
@staff_view(Capability.ADMINISTER)
def switch(request: StaffRequest, server_id: UUID) -> HttpResponseBase:
    services.set_enabled(server_id, request.POST.get("on") == "yes", actor=_actor(request))
    return redirect("console-tool-server", server_id)


@require_POST
@staff_view(Capability.ADMINISTER)
def remove(request: StaffRequest, server_id: UUID) -> HttpResponseBase:
    services.remove_server(server_id, actor=_actor(request))
    return redirect("console-tool-servers")


@require_POST
@staff_view(Capability.ADMINISTER)
def save_search(request: StaffRequest) -> HttpResponseBase:
    sent = request.POST
    try:
        web_services.set_search(
            sent.get("provider", ""),
            key=sent.get("key", "").strip(),
            base_url=sent.get("base_url", "").strip(),
            domains=sent.get("domains", "").replace(",", " ").split(),
            level=sent.get("level", "").strip(),
            actor=_actor(request),
            **_search_numbers(sent),
        )
    except SilasError as refusal:
        return _listing(request, search_refusal=refusal)
    return redirect("console-tool-servers")


@require_POST
@staff_view(Capability.ADMINISTER)
def remove_search(request: StaffRequest) -> HttpResponseBase:
    web_services.remove_search(actor=_actor(request))
    return redirect("console-tool-servers")


def _listing(
    request: StaffRequest,
    *,
    refusal: SilasError | None = None,
    search_refusal: SilasError | None = None,
    program_refusal: SilasError | None = None,
    given: dict[str, Any] | None = None,
) -> HttpResponseBase:
    """Show all servers and the settings of web search."""
    any_refusal, search = refusal or search_refusal or program_refusal, search_setting()
    return page(
        request,
        "console/tool_servers.html",
        at="tool-servers",
        status=any_refusal.status if any_refusal else 200,
        rows=queries.servers(),
        refusal=refusal,
        program_refusal=program_refusal,
        skills=sorted(set(skills.active_versions().values_list("name", flat=True))),
        given=given or {},
        search=search,
        search_problem=search_sentence(search.failure) if search else "",
        search_refusal=search_refusal,
        providers=SearchProvider.choices,
    )


def _render(request: StaffRequest, row: ToolServer, refusal: SilasError | None = None) -> TemplateResponse:
    return page(
        request,
        "console/tool_server.html",
        at="tool-servers",
        status=refusal.status if refusal else 200,
        row=row,
        problem=server_refresh.failure_message(row.failure),
        tools=[_tool_for_page(tool) for tool in queries.tools(row.pk)],
        risks=Risk.choices,
        readers=queries.tools(row.pk).filter(state=ToolState.ACCEPTED, acting=False),
        expectations=_EXPECTATIONS,
        refusal=refusal,
    )


def _tool_for_page(tool: OutsideTool) -> dict[str, object]:
    """Return the tool with its current description, and the accepted one if that differs."""
    now, before = tool.seen or {}, tool.said or {}
    changed = tool.state == ToolState.SUSPENDED and bool(tool.digest) and tool.digest != tool.seen_digest
    return {
        "row": tool,
        "says": str(now.get("description", ""))[:_SHOWN_CHARS],
        "said": str(before.get("description", ""))[:_SHOWN_CHARS] if changed else "",
        "takes": _arguments(now),
        "took": _arguments(before) if changed else "",
        "changed": changed,
        "gone": not tool.seen_digest,
    }


def _arguments(said: dict[str, Any]) -> str:
    names = (said.get("schema") or {}).get("properties") or {}
    return ", ".join(str(name) for name in names)[:_SHOWN_CHARS]


def _terms(sent: Any) -> Terms:
    """Return the terms. Raises `SilasError`: `tool_terms` 422 for invalid numbers."""
    try:
        price, seconds = Decimal(sent.get("price") or "0"), int(sent.get("timeout") or "30")
    except (InvalidOperation, ValueError):
        raise SilasError(ErrorCode.TOOL_TERMS, _("Enter numbers for price and timeout.")) from None
    return Terms(
        acting=bool(sent.get("acting")),
        risk=sent.get("risk", ""),
        level=sent.get("level", "").strip(),
        price=price,
        timeout=seconds,
        proof=_proof(sent),
    )


def _proof(sent: Any) -> dict[str, object]:
    """Return the check of an acting tool, written as `order=$order, view=short`; empty without a reading tool."""
    if not sent.get("proof_tool"):
        return {}
    pairs = [part.partition("=") for part in sent.get("proof_args", "").split(",") if part.strip()]
    kind, value = sent.get("proof_expect", ""), sent.get("proof_value", "").strip()
    return {
        "tool": sent["proof_tool"],
        "args": {name.strip(): value.strip() for name, _, value in pairs},
        "expect": {kind: value},
    }


def _search_numbers(sent: Any) -> dict[str, Any]:
    """Return price and number of results. Raises `SilasError`: `search_terms` 422 for invalid numbers."""
    try:
        return {"most_results": int(sent.get("most_results") or "5"), "price": Decimal(sent.get("price") or "0")}
    except (InvalidOperation, ValueError):
        raise SilasError(ErrorCode.SEARCH_TERMS, _("Enter numbers for price and maximum results.")) from None


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
