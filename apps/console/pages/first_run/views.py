"""The first run: from an empty installation to a chatbot on a website, in five screens.

The first screen is open to anyone with the set-up address until a company exists; the others are for owners. Each
screen saves at once, and the next visit continues where the last one ended.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.password_validation import validate_password
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from apps.access.tokens import test_ticket
from apps.console.base import page
from apps.console.installs import installs_of
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.knowledge.uploads import Upload, collection_of
from apps.console.pages.studio import model_setup
from apps.console.pages.studio.model_forms import ModelForm
from apps.knowledge import intake
from apps.knowledge.models import Intake
from apps.tenants import first_run
from apps.tenants.enums import Role
from apps.tenants.models import FirstRun
from apps.tenants.provider_keys import store_provider_key
from apps.tenants.rules import MODEL_ROLES, origins_problem, typed_origins
from apps.tenants.services import change_deployment
from apps.widgets.snippets import snippet
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from kernel.timezones import timezone_error

STEP_NAMES = {
    "model": gettext_lazy("Model"),
    "knowledge": gettext_lazy("Knowledge"),
    "sites": gettext_lazy("Allowed websites"),
    "ready": gettext_lazy("Install"),
}


class CompanyForm(forms.Form):
    company = forms.CharField(label=gettext_lazy("Company"), max_length=120)
    person = forms.CharField(label=gettext_lazy("Your name"), max_length=120, required=False)
    email = forms.EmailField(label=gettext_lazy("Email address"), max_length=254)
    password = forms.CharField(label=gettext_lazy("Password"), max_length=200, strip=False, widget=forms.PasswordInput)
    timezone = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        validate_password(password)
        return password

    def clean_timezone(self) -> str:
        """What the browser says, if there is such a zone."""
        zone = str(self.cleaned_data["timezone"])
        return "Europe/London" if not zone or timezone_error(zone) else zone


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def set_up(request: HttpRequest, code: str) -> HttpResponseBase:
    """Create the first account. A wrong code and a finished set-up give the same answer."""
    if not first_run.may_set_up(code, secret_key=settings.SECRET_KEY):
        return render(request, "console/first_run_closed.html", status=404)
    form = CompanyForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _company(request, form, status=422 if request.method == "POST" else 200)
    cleaned = form.cleaned_data
    try:
        user = first_run.create_first_company(
            first_run.NewCompany(
                cleaned["company"], cleaned["email"], cleaned["password"], cleaned["person"], cleaned["timezone"]
            )
        )
    except SilasError as refusal:
        form.add_error(None, refusal.message)
        return _company(request, form, status=refusal.status)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("console-begin")


def _company(request: HttpRequest, form: CompanyForm, *, status: int) -> HttpResponseBase:
    return render(request, "console/first_run_company.html", {"form": form}, status=status)


@require_safe
@staff_view(Role.OWNER)
def begin(request: StaffRequest) -> HttpResponseBase:
    """Go to the screen where this company stopped."""
    run = first_run.get_or_start(actor=request.member.user.actor)
    return redirect(f"console-begin-{first_run.next_step(run)}")


@sensitive_post_parameters("key")
@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER, scoped=False)
def model(request: StaffRequest) -> HttpResponseBase:
    """Choose the model. A key is tested outside of any scope before it is saved."""
    form = ModelForm(request.POST or None)
    with tenant_scope(request.member.tenant):
        run = _run(request)
        keys = run.deployment.keys
        if request.method != "POST" or not form.is_valid():
            return _screen(request, run, "model", form=form).render()
    tested = model_setup.try_form(form, keys)
    with tenant_scope(request.member.tenant):
        if tested is None:
            return _screen(request, run, "model", form=form).render()
        name, typed = form.model_id, {part: form.cleaned_data[part] for part in ("key", "address")}
        if form.credential and form.cleaned_data["kind"] == "provider":
            store_provider_key(run.deployment, model=name, **typed, actor=request.member.user.actor)
        if form.cleaned_data["kind"] == "provider":
            messages.success(request, model_setup.cost_of(name, tested))
        names = dict.fromkeys(MODEL_ROLES, name)
        change_deployment(run.deployment, actor=request.member.user.actor, model_names=names)
        return _next(request, run, "model")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def knowledge(request: StaffRequest) -> HttpResponseBase:
    """Add knowledge. Each submission starts one import; the screen stays until the owner continues."""
    run = _run(request)
    if request.method != "POST":
        return _screen(request, run, "knowledge", **_imports())
    if "on" in request.POST:
        return _next(request, run, "knowledge")
    refusal = Upload(request).into(collection_of("knowledge", actor=request.member.user.actor).pk)
    if refusal is None:
        return redirect("console-begin-knowledge")
    return _screen(request, run, "knowledge", refusal=refusal, **_imports())


def _imports() -> dict[str, object]:
    rows = list(Intake.objects.defer("content").order_by("-created_at")[:20])
    return {"intakes": rows, "busy": any(row.ended_at is None for row in rows), "kinds": ",".join(intake.KINDS)}


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def sites(request: StaffRequest) -> HttpResponseBase:
    run = _run(request)
    if request.method != "POST":
        return _screen(request, run, "sites", origins="\n".join(run.deployment.allowed_origins))
    typed = request.POST.get("origins", "")[:8000]
    listed = typed_origins(typed)
    if problem := origins_problem(listed):
        return _screen(request, run, "sites", origins=typed, problem=problem)
    change_deployment(run.deployment, actor=request.member.user.actor, allowed_origins=listed)
    return _next(request, run, "sites")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def ready(request: StaffRequest) -> HttpResponseBase:
    run = _run(request)
    if request.method == "POST":
        first_run.complete_step(run, "ready", actor=request.member.user.actor)
        return redirect("console-studio", run.deployment_id)
    installs = installs_of(run.deployment)
    if installs.are_shown_by(request):
        return HttpResponse(status=204)
    return _screen(
        request,
        run,
        "ready",
        snippet=snippet(request.build_absolute_uri("/"), run.deployment),
        ticket=test_ticket(run.deployment.public_key),
        installs=installs,
    )


def _run(request: StaffRequest) -> FirstRun:
    return first_run.get_or_start(actor=request.member.user.actor)


def _next(request: StaffRequest, run: FirstRun, step: str) -> HttpResponseBase:
    first_run.complete_step(run, step, actor=request.member.user.actor)
    return redirect(f"console-begin-{first_run.STEPS[first_run.STEPS.index(step) + 1]}")


def _screen(request: StaffRequest, run: FirstRun, step: str, **more: Any) -> TemplateResponse:
    place = first_run.STEPS.index(step)
    form = more.get("form")
    wrong = bool(more.get("problem") or more.get("refusal") or (form is not None and form.errors))
    steps = [(name, STEP_NAMES[name], name in run.done, name == step) for name in first_run.STEPS]
    context = {
        "run": run,
        "place": run.deployment,
        "step": step,
        "steps": steps,
        "number": place + 2,
        "back": first_run.STEPS[place - 1] if place else "",
        **more,
    }
    return page(request, f"console/first_run_{step}.html", at="studio", status=422 if wrong else 200, **context)
