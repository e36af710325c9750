"""The Settings area: everything that a team sets up once, in groups, each page in the room it belongs to; and the pages
of the company, of retention, of visitors' limits and of the time to decide."""

from __future__ import annotations

from django.conf import settings
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from apps.approvals import timings
from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.navigation import settings_for
from apps.console.pages.settings.forms import CardTimingsForm, CompanyForm, RetentionForm, VisitorLimitsForm
from apps.tenants import company as companies
from apps.tenants import company_limits
from apps.tenants.enums import Capability
from apps.tenants.models import Deployment
from kernel.errors import NotFound

MAX_CHARS = 80


@require_safe
@staff_view()
def overview(request: StaffRequest) -> HttpResponseBase:
    """List the pages of Settings that the member may open; with `q` those that match."""
    words = " ".join(request.GET.get("q", "").replace("\0", "")[:MAX_CHARS].split())
    groups = settings_for(request.member, words)
    return page(request, "console/settings.html", at="settings", groups=groups, words=words)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def company(request: StaffRequest) -> HttpResponseBase:
    """The company's name and time zone."""
    form = CompanyForm(request.POST if request.method == "POST" else None, initial=companies.company_values())
    if request.method == "POST" and form.is_valid():
        companies.change_company(form.cleaned_data, actor=request.member.user.actor)
        return redirect("console-company-settings")
    return page(request, "console/company_settings.html", at="settings", status=422 if form.errors else 200, form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def retention(request: StaffRequest) -> HttpResponseBase:
    """For how long the company keeps its data."""
    form = RetentionForm(
        request.POST if request.method == "POST" else None,
        initial=company_limits.retention_values(),
        installation=company_limits.installation_days(),
    )
    if request.method == "POST" and form.is_valid():
        company_limits.change_retention(form.values, actor=request.member.user.actor)
        return redirect("console-retention")
    return page(request, "console/retention.html", at="settings", status=422 if form.errors else 200, form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def visitor_limits(request: StaffRequest) -> HttpResponseBase:
    """How much the company's visitors may send."""
    form = VisitorLimitsForm(
        request.POST if request.method == "POST" else None,
        initial=company_limits.visitor_limit_values(),
        installation=settings.VISITOR_LIMITS,
    )
    if request.method == "POST" and form.is_valid():
        company_limits.change_visitor_limits(form.values, actor=request.member.user.actor)
        return redirect("console-visitor-limits")
    return page(request, "console/visitor_limits.html", at="settings", status=422 if form.errors else 200, form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def card_timings(request: StaffRequest) -> HttpResponseBase:
    """How long cards wait for a decision: of the company, or with `chatbot` of that one."""
    chatbots = list(Deployment.objects.order_by("title"))
    chosen = _chosen(chatbots, request.GET.get("chatbot", ""))
    chatbot_id = chosen.pk if chosen else None
    form = CardTimingsForm(
        request.POST if request.method == "POST" else None,
        initial=timings.card_timings(chatbot_id),
        otherwise=timings.inherited_timings(chatbot_id),
    )
    here = reverse("console-card-timings")
    if request.method == "POST" and form.is_valid():
        timings.change_card_timings(form.values, deployment_id=chatbot_id, actor=request.member.user.actor)
        return redirect(f"{here}?chatbot={chatbot_id}" if chosen else here)
    return page(
        request,
        "console/card_timings.html",
        at="settings",
        status=422 if form.errors else 200,
        form=form,
        chatbots=chatbots,
        chosen=chosen,
    )


def _chosen(chatbots: list[Deployment], asked: str) -> Deployment | None:
    """The chatbot with this id; None if none is asked for. Raises `NotFound`."""
    if not asked:
        return None
    chosen = next((chatbot for chatbot in chatbots if str(chatbot.pk) == asked), None)
    if chosen is None:
        raise NotFound()
    return chosen
