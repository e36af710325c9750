"""Simulations: suites of scenarios, their runs, and what came of each conversation.

Owners make suites, start and stop runs; approvers read. Everything simulated happens in an isolated copy (ADR 120).
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.simulations.forms import VisitorForm
from apps.console.templatetags.console import code_label
from apps.simulations import makers, queries, services
from apps.simulations.enums import RESUMABLE, Origin, Outcome
from apps.simulations.reports import Difference
from apps.tenants.enums import Capability
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id

VISITORS = "Visitors"
MADE_FROM = {
    Origin.DOCUMENT: gettext_lazy("Documents: a question for each section"),
    Origin.INCIDENT: gettext_lazy("Incidents: badly rated conversations and unanswered questions"),
    Origin.CONVERSATION: gettext_lazy("Recent conversations, without private data"),
    Origin.ATTACKS: gettext_lazy("The catalogue of attacks"),
}
REASONS = {
    "budget_spent": gettext_lazy("The budget was spent"),
    "stopped": gettext_lazy("Stopped by a person"),
    "no_model": gettext_lazy("No model can play the visitors: add a provider key, or lines to say"),
    "http_401": gettext_lazy("The model's provider refused the key"),
    "http_429": gettext_lazy("The model's provider was asked too often"),
    "connection_lost": gettext_lazy("The model's provider couldn't be reached"),
    "request_timeout": gettext_lazy("The model took too long to answer"),
}
DIFFERENCES = {
    Difference.PASSES: gettext_lazy("passes now"),
    Difference.FAILS: gettext_lazy("fails now"),
    Difference.NEW_PASSES: gettext_lazy("new, passes"),
    Difference.NEW_FAILS: gettext_lazy("new, fails"),
    Difference.GONE: gettext_lazy("no longer played"),
}


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    return _listing(request, _chosen(request.GET.get("chatbot", "")))


@require_POST
@staff_view(Capability.ADMINISTER)
def make(request: StaffRequest) -> HttpResponseBase:
    """Make a suite out of what the company has; scenarios of the same name are replaced."""
    chatbot, origin = _chosen(request.POST.get("chatbot", "")), request.POST.get("origin", "")
    if chatbot is None or origin not in MADE_FROM:
        raise NotFound()
    try:
        makers.make_suite(chatbot, Origin(origin))
    except SilasError as refusal:
        return _listing(request, chatbot, refusal=refusal)
    return _to_listing(chatbot)


@require_POST
@staff_view(Capability.ADMINISTER)
def add_visitor(request: StaffRequest, deployment_id: UUID) -> HttpResponseBase:
    """Add a visitor to the suite of those that staff described; one of the same name is replaced."""
    chatbot = deployment_by_id(deployment_id)
    form = VisitorForm(request.POST, chatbot=chatbot)
    if not form.is_valid():
        return _listing(request, chatbot, form=form)
    try:
        suite = services.save_suite(chatbot, VISITORS)
        services.save_scenario(suite, form.cleaned_data["name"], **form.as_scenario())
    except SilasError as refusal:
        return _listing(request, chatbot, refusal=refusal, form=form)
    return _to_listing(chatbot)


@require_POST
@staff_view(Capability.ADMINISTER)
def start(request: StaffRequest, suite_id: UUID) -> HttpResponseBase:
    """Start a run; a suite that is being run is shown instead of being run twice."""
    suite = queries.suite(suite_id)
    going_on = queries.active_run(suite)
    if going_on is not None:
        return redirect("console-simulation", going_on.pk)
    try:
        budget = _amount(request.POST.get("budget", "").strip())
        begun = services.run_simulation(suite.deployment, suite, budget_usd=budget, by=request.member.user.actor)
    except SilasError as refusal:
        return _listing(request, suite.deployment, refusal=refusal)
    return redirect("console-simulation", begun.pk)


@require_safe
@staff_view(*DECIDING_ROLES)
def run(request: StaffRequest, run_id: UUID) -> HttpResponseBase:
    row = queries.run(run_id)
    counts = queries.counts(row)
    order = {Outcome.FAILED: 0, Outcome.ERROR: 1, Outcome.WAITING: 2, Outcome.LEFT_OUT: 3, Outcome.PASSED: 4}
    results = sorted(row.results.order_by("place"), key=lambda result: order[Outcome(result.outcome)])
    return page(
        request,
        "console/simulation.html",
        at="simulations",
        run=row,
        goes_on=row.is_active,
        can_resume=row.status in RESUMABLE and counts[Outcome.LEFT_OUT] > 0,
        reason=reason_label(row.reason),
        good=counts[Outcome.PASSED],
        played=sum(counts.values()) - counts[Outcome.WAITING] - counts[Outcome.LEFT_OUT],
        total=sum(counts.values()),
        cost=queries.cost_of(row),
        results=results,
        differences=[(DIFFERENCES[what], name) for what, name in queries.differences_of(row)],
    )


@require_POST
@staff_view(Capability.ADMINISTER)
def stop(request: StaffRequest, run_id: UUID) -> HttpResponseBase:
    services.stop(run_id, by=request.member.user.actor)
    return redirect("console-simulation", run_id)


@require_POST
@staff_view(Capability.ADMINISTER)
def resume(request: StaffRequest, run_id: UUID) -> HttpResponseBase:
    services.resume(run_id, by=request.member.user.actor)
    return redirect("console-simulation", run_id)


def _chosen(named: str) -> Deployment | None:
    """The chatbot that is named, or the first; None where there is none."""
    rows = Deployment.objects.order_by("title", "pk")
    found: Deployment | None = rows.filter(pk=require_id(named)).first() if named else rows.first()
    if named and found is None:
        raise NotFound()
    return found


def reason_label(reason: str) -> str:
    """Why a run ended as it did. Providers' other failures are told by their code."""
    return str(REASONS.get(reason) or code_label(reason)) if reason else ""


def _to_listing(chatbot: Deployment) -> HttpResponseBase:
    response = redirect("console-simulations")
    response["Location"] += f"?chatbot={chatbot.pk}"
    return response


def _listing(
    request: StaffRequest,
    chatbot: Deployment | None,
    *,
    refusal: SilasError | None = None,
    form: VisitorForm | None = None,
) -> TemplateResponse:
    return page(
        request,
        "console/simulations.html",
        at="simulations",
        status=refusal.status if refusal else 422 if form else 200,
        refusal=refusal,
        chatbots=list(Deployment.objects.order_by("title", "pk")),
        chatbot=chatbot,
        suites=queries.suites_of(chatbot) if chatbot else [],
        runs=queries.runs_of(chatbot) if chatbot else [],
        made_from=MADE_FROM.items(),
        form=form or VisitorForm(chatbot=chatbot),
    )


def _amount(text: str) -> Decimal | None:
    """Raises `SilasError("invalid_form")` 422 for anything but a positive amount; None without one."""
    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount < 100_000:
        raise SilasError(ErrorCode.INVALID_FORM, _("The budget must be an amount in US dollars."), status=422)
    return amount
