"""Safety: what agents intend to do, the holds that wait for a person, and the safety policy, which owners edit.

A verification code is shown once, in the answer to the request, and stored nowhere.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.formats import date_format
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.approvals.cards.schemas import AnswerRefused
from apps.console.base import idempotency_key, page
from apps.console.charts import columns
from apps.console.members import DECIDING_ROLES, StaffRequest, refused, staff_view
from apps.console.names import names_for
from apps.console.pages.account.approval_keys import in_json
from apps.console.pages.login.reauthentication import passkey_origin
from apps.safety import queries, services
from apps.safety.enums import OperatorAction
from apps.safety.forms import PolicyForm, initial_values
from apps.safety.models import Hold
from apps.safety.rules.stages import evaluate
from apps.safety.rules.templates import TEMPLATES
from apps.safety.schemas import MAX_HINT_LENGTH, Intended
from apps.safety.services.policies import Trial
from apps.tenants.enums import KeyScope, Role
from apps.tenants.services import create_api_key
from kernel.errors import NotFound, SilasError

SHOWN = 50


@require_safe
@staff_view(*DECIDING_ROLES)
def safety(request: StaffRequest) -> HttpResponseBase:
    holds, executions, steps = queries.open_holds(), queries.recent_executions(SHOWN), queries.recent_steps(SHOWN)
    proved = {kind: services.needs_passkey(kind, request.member.user) for kind in {hold.kind for hold in holds}}
    names = names_for({*(hold.principal for hold in holds), *(execution.agent.principal for execution in executions)})
    return page(
        request,
        "console/safety.html",
        at="safety",
        holds=[(hold, names.of(hold.principal), proved[hold.kind]) for hold in holds],
        executions=[(execution, names.of(execution.agent.principal)) for execution in executions],
        steps=steps,
        policy=queries.policy_of(""),
        **({} if request.htmx else _trends()),
    )


def _trends() -> dict[str, Any]:
    """Return the chart of the last days, which a refresh of the page leaves out."""
    recent = queries.trends()
    names = [date_format(day.date, "j M") for day in recent.days]
    chart = columns(names, [day.told for day in recent.days], [day.held for day in recent.days])
    return {"trends": recent, "chart": chart, "daily": zip(names, recent.days, strict=True)}


@require_POST
@in_json
@staff_view(*DECIDING_ROLES)
def step_up(request: StaffRequest, hold_id: UUID, what: str) -> HttpResponseBase:
    """Return the passkey options for this action; `options` is null where no passkey is needed."""
    if what not in OperatorAction:
        raise NotFound()
    user, (rp_id, origin) = request.member.user, passkey_origin(request)
    options = services.begin_operator_action(hold_id, OperatorAction(what), user=user, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})


@require_POST
@staff_view(*DECIDING_ROLES)
def allow(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    return _act(request, hold_id, OperatorAction.ALLOW)


@require_POST
@staff_view(*DECIDING_ROLES)
def code(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    """Show the verification code, in this answer only."""
    return _act(request, hold_id, OperatorAction.CODE)


@require_POST
@staff_view(*DECIDING_ROLES)
def token(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    return _act(request, hold_id, OperatorAction.TOKEN)


def _act(request: StaffRequest, hold_id: UUID, what: OperatorAction) -> HttpResponseBase:
    user = request.member.user
    result = services.perform_operator_action(hold_id, what, user=user, step_up=request.POST.get("step_up", ""))
    if isinstance(result, AnswerRefused):
        return refused(request, SilasError(result.code, result.message, status=409))
    if what is OperatorAction.ALLOW:
        return redirect("console-safety")
    hold = Hold.objects.select_related("agent").get(pk=hold_id)
    about: dict[str, Any] = {
        "secret": result,
        "hold": hold,
        "kind": what.value,
        "step_up": services.needs_passkey(hold.kind, user),
    }
    return page(request, "console/safety_secret.html", at="safety", **about)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def key(request: StaffRequest) -> HttpResponseBase:
    """Create a key that can only report to the safety loop. The key is only in the answer to this form."""
    if request.method != "POST":
        return redirect("console-safety")
    once = idempotency_key(request)
    created = create_api_key("Agent", scopes=[KeyScope.SAFETY_AGENT], actor=request.member.user.actor, once=once)
    if not created.key:
        return redirect("console-safety")
    return page(request, "console/safety_secret.html", at="safety", secret=created.key, hold=None, kind="key")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def policy(request: StaffRequest) -> HttpResponseBase:
    """The safety policy, general or of one principal (`?of=`): saved as the next version, active at once, or tested."""
    whose = _principal(request)
    newest = queries.versions_of(whose).first()
    number, written = newest.number if newest else 0, queries.stored_policy(whose)
    if request.method != "POST":
        policy_or_template = TEMPLATES.get(request.GET.get("template", ""), written)
        return _policy_page(request, whose, PolicyForm(initial=initial_values(policy_or_template, number)))
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return _policy_page(request, whose, form, status=422)
    try:
        if "dry" in request.POST:
            trial = services.backtest_policy(services.validate_policy(form.content()), principal=whose)
            return _policy_page(request, whose, form, trial=trial)
        note, seen = form.cleaned_data["note"], form.cleaned_data["seen"]
        services.write_policy(form.content(), principal=whose, actor=request.member.user.actor, note=note, seen=seen)
    except SilasError as refusal:
        return _policy_page(request, whose, form, status=refusal.status, refusal=refusal)
    return redirect(_policy_address(whose))


def _principal(request: StaffRequest) -> str:
    """Return the principal of the policy, empty for the general one. Raises `NotFound` for an unknown principal."""
    whose = request.GET.get("of", "")
    if whose and whose not in queries.principals():
        raise NotFound()
    return whose


def _policy_address(whose: str) -> str:
    return reverse("console-safety-policy") + (f"?{urlencode({'of': whose})}" if whose else "")


def _policy_page(
    request: StaffRequest,
    whose: str,
    form: PolicyForm,
    *,
    status: int = 200,
    refusal: SilasError | None = None,
    trial: Trial | None = None,
) -> HttpResponseBase:
    rows, others = queries.versions_of(whose)[:SHOWN], queries.principals()
    names = names_for([*others, *(row.written_by for row in rows)])
    context = {
        "form": form,
        "refusal": refusal,
        "trial": trial,
        "versions": [(row, names.of(row.written_by)) for row in rows],
        "templates": TEMPLATES,
        "longest": MAX_HINT_LENGTH,
        "whose": whose,
        "whom": names.of(whose) if whose else "",
        "others": [(principal, names.of(principal)) for principal in others],
    }
    return page(request, "console/safety_policy.html", at="safety", status=status, **context)


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, number: int) -> HttpResponseBase:
    whose = _principal(request)
    services.restore_policy_version(number, principal=whose, actor=request.member.user.actor)
    return redirect(_policy_address(whose))


@require_POST
@staff_view(Role.OWNER)
def take_back(request: StaffRequest) -> HttpResponseBase:
    """Remove the policy of one principal (`?of=`), who follows the general policy again."""
    whose = _principal(request)
    services.withdraw_policy(whose, actor=request.member.user.actor)
    return redirect(_policy_address(whose))


@require_POST
@staff_view(Role.OWNER)
def try_hint(request: StaffRequest) -> HttpResponseBase:
    """Test an action on the active policy, and show which recorded decisions the policy would change."""
    whose = _principal(request)
    hint, active_policy = request.POST.get("hint", "")[:MAX_HINT_LENGTH], queries.policy_of(whose)
    verdict = evaluate(active_policy, Intended(hint)) if hint.strip() else None
    trial = services.backtest_policy(active_policy, principal=whose)
    return page(request, "console/safety_tried.html", at="safety", hint=hint, verdict=verdict, trial=trial)
