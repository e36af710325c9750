"""What do agents intend just now, and which of them waits for a person? One screen with a way out of every hold.

A code is shown to whoever asked for it, once, in the answer itself; it is kept nowhere. Owners also write policy.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.approvals.schemas import AnswerRefused
from apps.console.charts import columns
from apps.console.members import DECIDING_ROLES, StaffRequest, refused, staff_view
from apps.console.names import names_for
from apps.console.proving import place_of
from apps.console.views.pages import mark_of, page
from apps.console.views.passkeys import in_json
from apps.safety import queries, services
from apps.safety.enums import OperatorAction
from apps.safety.forms import PolicyForm, initial_values
from apps.safety.models import Hold
from apps.safety.rules import TEMPLATES, evaluate
from apps.safety.schemas import MAX_HINT_LENGTH, Intended
from apps.safety.services.policies import Trial
from apps.safety.trends import trends
from apps.tenants.enums import KeyScope, Role
from apps.tenants.services import create_api_key
from kernel.errors import NotFound, SilasError

SHOWN = 50


@require_safe
@staff_view(*DECIDING_ROLES)
def safety(request: StaffRequest) -> HttpResponseBase:
    holds, executions, steps = queries.open_holds(), queries.recent_executions(SHOWN), queries.recent_steps(SHOWN)
    proved = {kind: services.needs_passkey(kind, request.member.user) for kind in {hold.kind for hold in holds}}
    names = names_for({*(hold.principal for hold in holds), *(each.agent.principal for each in executions)})
    return page(
        request,
        "console/safety.html",
        at="safety",
        holds=[(hold, names.of(hold.principal), proved[hold.kind]) for hold in holds],
        executions=[(each, names.of(each.agent.principal)) for each in executions],
        steps=steps,
        policy=queries.policy_of(""),
        **({} if request.htmx else _drawn()),
    )


def _drawn() -> dict[str, Any]:
    """The last days; what an open page looks at again has nothing of it."""
    found = trends()
    names = [f"{each.date.day} {each.date:%b}" for each in found.days]
    told, held = [each.told for each in found.days], [each.held for each in found.days]
    return {"trends": found, "drawn": columns(names, told, held), "daily": zip(names, found.days, strict=True)}


@require_POST
@in_json
@staff_view(*DECIDING_ROLES)
def step_up(request: StaffRequest, hold_id: UUID, what: str) -> HttpResponseBase:
    """What the browser asks a passkey before this press; `options` is null where none is needed."""
    if what not in OperatorAction:
        raise NotFound("press")
    user, (rp_id, origin) = request.member.user, place_of(request)
    options = services.begin_operator_action(hold_id, OperatorAction(what), user=user, rp_id=rp_id, origin=origin)
    return JsonResponse({"options": options})


@require_POST
@staff_view(*DECIDING_ROLES)
def allow(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    return _pressed(request, hold_id, OperatorAction.ALLOW)


@require_POST
@staff_view(*DECIDING_ROLES)
def code(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    """The answer to the press is the only place where the code stands."""
    return _pressed(request, hold_id, OperatorAction.CODE)


@require_POST
@staff_view(*DECIDING_ROLES)
def token(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    return _pressed(request, hold_id, OperatorAction.TOKEN)


def _pressed(request: StaffRequest, hold_id: UUID, what: OperatorAction) -> HttpResponseBase:
    user = request.member.user
    shown = services.perform_operator_action(hold_id, what, user=user, step_up=request.POST.get("step_up", ""))
    if isinstance(shown, AnswerRefused):
        return refused(request, SilasError(shown.code, shown.message, status=409))
    if what is OperatorAction.ALLOW:
        return redirect("console-safety")
    hold = _hold(hold_id)
    about: dict[str, Any] = {
        "secret": shown,
        "hold": hold,
        "kind": what.value,
        "step_up": services.needs_passkey(hold.kind, user),
    }
    return page(request, "console/safety_secret.html", at="safety", **about)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def key(request: StaffRequest) -> HttpResponseBase:
    """A key that may report to the loop and nothing else. Its page is the answer to the press alone."""
    if request.method != "POST":
        return redirect("console-safety")
    once = mark_of(request)
    made = create_api_key("Agent", scopes=[KeyScope.SAFETY_AGENT], actor=request.member.user.actor, once=once)
    if not made.key:
        return redirect("console-safety")
    return page(request, "console/safety_secret.html", at="safety", secret=made.key, hold=None, kind="key")


def _hold(hold_id: UUID) -> Hold:
    found: Hold | None = Hold.objects.select_related("agent").filter(pk=hold_id).first()
    if found is None:
        raise NotFound("hold")
    return found


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def policy(request: StaffRequest) -> HttpResponseBase:
    """What agents may do by themselves: everybody, or one principal (`?of=`); written as the next version, in force at
    once, or tried on what was recorded."""
    whose = _whose(request)
    newest = queries.versions_of(whose).first()
    number, said = newest.number if newest else 0, queries.stored_policy(whose)
    if request.method != "POST":
        begun = TEMPLATES.get(request.GET.get("template", ""), said)
        return _policy_page(request, whose, PolicyForm(initial=initial_values(begun, number)))
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


def _whose(request: StaffRequest) -> str:
    """The principal whose policy it is, "" for everybody's. Raises `NotFound`: nobody else's, and no made-up one."""
    whose = request.GET.get("of", "")
    if whose and whose not in queries.principals():
        raise NotFound("principal")
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
    shown = {
        "form": form,
        "refusal": refusal,
        "trial": trial,
        "versions": [(row, names.of(row.written_by)) for row in rows],
        "templates": TEMPLATES,
        "longest": MAX_HINT_LENGTH,
        "whose": whose,
        "whom": names.of(whose) if whose else "",
        "others": [(each, names.of(each)) for each in others],
    }
    return page(request, "console/safety_policy.html", at="safety", status=status, **shown)


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, number: int) -> HttpResponseBase:
    whose = _whose(request)
    services.restore_policy_version(number, principal=whose, actor=request.member.user.actor)
    return redirect(_policy_address(whose))


@require_POST
@staff_view(Role.OWNER)
def take_back(request: StaffRequest) -> HttpResponseBase:
    """The one principal (`?of=`) follows everybody's policy again."""
    whose = _whose(request)
    services.withdraw_policy(whose, actor=request.member.user.actor)
    return redirect(_policy_address(whose))


@require_POST
@staff_view(Role.OWNER)
def try_hint(request: StaffRequest) -> HttpResponseBase:
    """What the policy in force would say to a hint, and which recorded steps it would answer otherwise now."""
    whose = _whose(request)
    hint, in_force = request.POST.get("hint", "")[:MAX_HINT_LENGTH], queries.policy_of(whose)
    verdict = evaluate(in_force, Intended(hint)) if hint.strip() else None
    trial = services.backtest_policy(in_force, principal=whose)
    return page(request, "console/safety_tried.html", at="safety", hint=hint, verdict=verdict, trial=trial)
