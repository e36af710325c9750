"""Gates with their versions, for owners: edit a draft, test it on recorded messages, activate and roll back.

Editing, testing and activating are separate steps on purpose; a draft has no effect until it is activated.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page, sent_id
from apps.console.members import StaffRequest, staff_view
from apps.console.names import names_for
from apps.gates import queries, services
from apps.gates.backtest.runs import MOST_ASKED, MOST_MESSAGES, BacktestReport, backtest_version
from apps.gates.differences import TRIGGERS, Difference, differences, lines_of
from apps.gates.enums import GateProvider, GateStatus, GateTrigger
from apps.gates.forms import GateForm, initial_of
from apps.gates.models import Gate, GateVersion
from apps.gates.schemas import GateSpec
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from apps.work.queries import deployments_with_goals
from apps.work.schemas import WorkItemSpec
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

TRIALS = (50, 200, MOST_MESSAGES)
SHOWN_CHANGES = 100
# The fields of the form in groups.
GROUPS = (
    (gettext_lazy("Trigger"), ("name", "deployment", "on", "after_step", "extract")),
    (gettext_lazy("Check"), ("provider", "type", "check", "config")),
    (gettext_lazy("Number limits"), ("auto_from", "auto_to", "ask_from", "ask_to", "block_low", "block_high")),
    (gettext_lazy("Values"), ("allowed_values", "approval_values")),
    (gettext_lazy("Scripts and models"), ("check_command", "check_expect", "promote_to_policy")),
    (gettext_lazy("If it fails"), ("on_block", "order", "note")),
)
# Groups that most gates don't need: collapsed until they have a value.
FOLDED = (gettext_lazy("Number limits"), gettext_lazy("Values"), gettext_lazy("Scripts and models"))
UNTRIED = {
    "llm": gettext_lazy("This gate calls a model, and model calls were not allowed for this test."),
    "after_step": gettext_lazy("Results of work steps are not recorded, so this gate can't be tested."),
    "nothing_recorded": gettext_lazy("No recorded messages of this kind yet."),
}
ACTIONS = {
    "continue": gettext_lazy("Passes"),
    "block": gettext_lazy("Blocked"),
    "require_approval": gettext_lazy("Needs approval"),
}


class NewGateForm(GateForm):
    """The form of a new gate, which also asks for the chatbot."""

    deployment: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("Chatbot"), required=False, empty_label=gettext_lazy("All chatbots")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["deployment"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Deployment.objects.order_by("title")


@require_safe
@staff_view(Role.OWNER)
def listing(request: StaffRequest) -> HttpResponseBase:
    rows = [(gate, _trigger(version)) for gate, version in queries.gates_with_newest()]
    groups = [(status, [row for row in rows if row[0].status == status]) for status in _SHOWN]
    governing = deployments_with_goals()
    goals = [(place, goal, [_goal_gate(goal.spec, gate) for gate in goal.spec.gates]) for place, goal in governing]
    halted = queries.gates_missing_library([gate for _, goal in governing for gate in goal.spec.gates])
    return page(request, "console/gates.html", at="gates", groups=groups, none=not rows, goals=goals, halted=halted)


def _goal_gate(goal: WorkItemSpec, gate: GateSpec) -> dict[str, object]:
    """Return a gate of a goal file for the template: its lines, and the message to the visitor if it blocks."""
    lines = [line for line in lines_of(gate.model_dump(mode="json"), order=0) if line.field != "order"]
    follows = goal.escalation.get(gate.on_block)
    message = follows.message if follows else ""
    return {"name": gate.name, "trigger": TRIGGERS[GateTrigger(gate.on)], "lines": lines, "message": message}


_SHOWN = (GateStatus.ACTIVE, GateStatus.DRAFT, GateStatus.RETIRED)


@require_safe
@staff_view(Role.OWNER)
def gate(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    return _render(request, queries.gate_by_id(gate_id))


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def new(request: StaffRequest) -> HttpResponseBase:
    form = NewGateForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _form(request, form, None)
    place = form.cleaned_data["deployment"]
    return _save(request, form, None, deployment_id=place.pk if place else None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def edit(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    row = queries.gate_by_id(gate_id)
    form = GateForm(request.POST or None, initial=initial_of(queries.version_of(row, row.newest)))
    form.keep_name(row.name)
    if request.method != "POST" or not form.is_valid():
        return _form(request, form, row)
    return _save(request, form, row, deployment_id=row.deployment_id)


@require_safe
@staff_view(Role.OWNER)
def compare(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    row = queries.gate_by_id(gate_id)
    old = queries.version_of(row, _number(request, "before"))
    later = _number(request, "after") if "after" in request.GET else row.active or row.newest
    new = queries.version_of(row, later)
    return page(request, "console/gate_compare.html", at="gates", gate=row, old=old, new=new, lines=_between(old, new))


@require_POST
@staff_view(Role.OWNER, scoped=False)
def dry_run(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    """Test a version on recorded messages, outside of any scope because it can take a while."""
    chosen, many = request.POST.get("deployment", ""), request.POST.get("messages", "")
    result = backtest_version(
        request.member.tenant.pk,
        gate_id,
        _number(request, "version"),
        actor=_actor(request),
        deployment_id=sent_id(chosen) if chosen else None,
        messages=int(many) if many in map(str, TRIALS) else TRIALS[1],
        ask_models="ask_models" in request.POST,
    )
    with tenant_scope(request.member.tenant):
        return page(request, "console/gate_tried.html", at="gates", **_result(result)).render()


@require_POST
@staff_view(Role.OWNER)
def activate(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    services.activate(gate_id, _number(request, "version"), actor=_actor(request))
    return redirect("console-gate", gate_id)


@require_POST
@staff_view(Role.OWNER)
def roll_back(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    services.roll_back(gate_id, _number(request, "version"), actor=_actor(request))
    return redirect("console-gate", gate_id)


@require_POST
@staff_view(Role.OWNER)
def retire(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    services.retire(gate_id, actor=_actor(request))
    return redirect("console-gate", gate_id)


def _render(request: StaffRequest, row: Gate) -> HttpResponseBase:
    versions = queries.versions_of(row)
    names = names_for(version.written_by for version in versions)
    newest, active = versions[0], next((version for version in versions if version.number == row.active), None)
    draft, shown = newest if active is not newest else None, active or newest
    return page(
        request,
        "console/gate.html",
        at="gates",
        gate=row,
        active=active,
        lines=lines_of(shown.content, order=shown.order),
        draft=draft,
        changes=_between(active, draft) if active and draft else (),
        versions=[(version, names.of(version.written_by)) for version in versions],
        trials=TRIALS,
        deployments=Deployment.objects.order_by("title") if row.deployment_id is None else (),
        asks_a_model=newest.content.get("provider") == GateProvider.LLM,
        most_asked=MOST_ASKED,
    )


def _form(
    request: StaffRequest, form: GateForm, row: Gate | None, refusal: SilasError | None = None
) -> HttpResponseBase:
    groups = [(title, [form[name] for name in names if name in form.fields]) for title, names in GROUPS]
    folded = [(title, fields, title in FOLDED and not any(map(_has_input, fields))) for title, fields in groups]
    wrong = bool(form.errors) or refusal is not None
    context = {"form": form, "groups": folded, "foldable": FOLDED, "gate": row, "refusal": refusal}
    return page(request, "console/gate_edit.html", at="gates", status=422 if wrong else 200, **context)


def _has_input(field: forms.BoundField) -> bool:
    return bool(field.errors) or field.value() not in (None, "", False)


def _save(request: StaffRequest, form: GateForm, row: Gate | None, *, deployment_id: UUID | None) -> HttpResponseBase:
    cleaned = form.cleaned_data
    seen = cleaned["seen"] if row else 0
    try:
        version = services.write_version(
            form.spec,
            deployment_id=deployment_id,
            order=cleaned["order"],
            actor=_actor(request),
            note=cleaned["note"],
            seen=seen,
        )
    except SilasError as refusal:
        return _form(request, form, row, refusal)
    return redirect("console-gate", version.gate_id)


def _result(result: BacktestReport) -> dict[str, Any]:
    before, after = result.before or {}, result.after or {}
    counts = [(words, before.get(action, 0), after.get(action, 0)) for action, words in ACTIONS.items()]
    return {
        "done": result,
        "gate": result.gate,
        "counts": counts,
        "untried": UNTRIED.get(result.untried, result.untried),
        "changes": result.changes[:SHOWN_CHANGES],
        "more": len(result.changes) - SHOWN_CHANGES,
    }


def _between(old: GateVersion, new: GateVersion) -> tuple[Difference, ...]:
    return differences(old.content, new.content, old_order=old.order, new_order=new.order)


def _trigger(version: GateVersion) -> str:
    on = version.content.get("on")
    return TRIGGERS.get(on, "") if isinstance(on, str) else ""  # type: ignore[call-overload]  # as stored


def _number(request: HttpRequest, name: str) -> int:
    """Return the version number. Raises `NotFound` for anything else."""
    text = request.POST.get(name, "") or request.GET.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise NotFound()
    return int(text)


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
