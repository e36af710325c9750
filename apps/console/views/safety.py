"""What do agents intend just now, and which of them waits for a person? One screen with a way out of every hold.

A code is shown to whoever asked for it, once, in the answer itself; it is kept nowhere. Owners also write policy.
"""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.views.pages import page
from apps.safety import queries, services
from apps.safety.forms import PolicyForm, initial_of
from apps.safety.models import Hold
from apps.safety.rules import TEMPLATES, evaluate
from apps.safety.schemas import LONGEST_HINT, Intended, Policy
from apps.tenants.enums import KeyScope, Role
from apps.tenants.services import create_api_key
from kernel.errors import NotFound, SilasError

SHOWN = 50


@require_safe
@staff_view(*DECIDING_ROLES)
def safety(request: StaffRequest) -> HttpResponseBase:
    holds, executions, steps = queries.open_holds(), queries.recent_executions(SHOWN), queries.recent_steps(SHOWN)
    names = names_for({*(hold.principal for hold in holds), *(each.agent.principal for each in executions)})
    return page(
        request,
        "console/safety.html",
        at="safety",
        holds=[(hold, names.of(hold.principal)) for hold in holds],
        executions=[(each, names.of(each.agent.principal)) for each in executions],
        steps=steps,
        policy=queries.policy_of(""),
    )


@require_POST
@staff_view(*DECIDING_ROLES)
def allow(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    services.allow(hold_id, actor=request.member.user.actor)
    return redirect("console-safety")


@require_POST
@staff_view(*DECIDING_ROLES)
def code(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    """The answer to the press is the only place where the code stands."""
    shown = services.show_code(hold_id, actor=request.member.user.actor)
    return page(request, "console/safety_secret.html", at="safety", secret=shown, hold=_hold(hold_id), kind="code")


@require_POST
@staff_view(*DECIDING_ROLES)
def token(request: StaffRequest, hold_id: UUID) -> HttpResponseBase:
    shown = services.issue_token(hold_id, actor=request.member.user.actor)
    return page(request, "console/safety_secret.html", at="safety", secret=shown, hold=_hold(hold_id), kind="token")


@require_POST
@staff_view(Role.OWNER)
def key(request: StaffRequest) -> HttpResponseBase:
    """A key that may report to the loop and nothing else."""
    made = create_api_key("Agent", scopes=[KeyScope.SAFETY_AGENT], actor=request.member.user.actor)
    return page(request, "console/safety_secret.html", at="safety", secret=made.key, hold=None, kind="key")


def _hold(hold_id: UUID) -> Hold:
    found: Hold | None = Hold.objects.select_related("agent").filter(pk=hold_id).first()
    if found is None:
        raise NotFound("hold")
    return found


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def policy(request: StaffRequest) -> HttpResponseBase:
    """What agents may do by themselves: written as the next version, in force at once."""
    newest = queries.versions_of("").first()
    number, said = (newest.number, newest.policy) if newest else (0, Policy())
    if request.method != "POST":
        begun = TEMPLATES.get(request.GET.get("template", ""), said)
        return _policy_page(request, PolicyForm(initial=initial_of(begun, number)))
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return _policy_page(request, form, status=422)
    content = form.content() | {"scores": [each.model_dump() for each in said.scores]}
    try:
        services.write_policy(
            content, actor=request.member.user.actor, note=form.cleaned_data["note"], seen=form.cleaned_data["seen"]
        )
    except SilasError as refusal:
        return _policy_page(request, form, status=refusal.status, refusal=refusal)
    return redirect("console-safety-policy")


def _policy_page(
    request: StaffRequest, form: PolicyForm, *, status: int = 200, refusal: SilasError | None = None
) -> HttpResponseBase:
    rows = queries.versions_of("")[:SHOWN]
    names = names_for(row.written_by for row in rows)
    versions = [(row, names.of(row.written_by)) for row in rows]
    shown = {"form": form, "refusal": refusal, "versions": versions, "templates": TEMPLATES, "longest": LONGEST_HINT}
    return page(request, "console/safety_policy.html", at="safety", status=status, **shown)


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, number: int) -> HttpResponseBase:
    services.roll_back(number, actor=request.member.user.actor)
    return redirect("console-safety-policy")


@require_POST
@staff_view(Role.OWNER)
def try_hint(request: StaffRequest) -> HttpResponseBase:
    """What the policy in force would say to a hint, and which recorded steps it would answer otherwise now."""
    hint, in_force = request.POST.get("hint", "")[:LONGEST_HINT], queries.policy_of("")
    verdict = evaluate(in_force, Intended(hint)) if hint.strip() else None
    trial = services.try_policy(in_force)
    return page(request, "console/safety_tried.html", at="safety", hint=hint, verdict=verdict, trial=trial)
