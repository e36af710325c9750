"""Gates with their versions, for owners: write one from a template, test, activate and roll back.

A gate is tried on a typed text before it is saved, and a draft on recorded messages before it is activated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import SimpleTemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.names import names_for
from apps.gates import queries, services
from apps.gates.backtest.runs import MOST_ASKED, MOST_MESSAGES, BacktestReport, backtest_version
from apps.gates.differences import TRIGGERS, Difference, differences, lines_of
from apps.gates.enums import GateCode, GateProvider, GateStatus, GateTrigger
from apps.gates.models import Gate, GateVersion
from apps.gates.providers import PROVIDERS
from apps.gates.providers.base import Request
from apps.gates.schemas import GateSpec
from apps.gates.template_forms import TEMPLATES, TemplateForm, template_of
from apps.sessions.steps.memory import MEMORY_TOOL
from apps.skills import queries as skills
from apps.skills.outside_tools import WEB_SEARCH
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from apps.toolservers import queries as toolservers
from apps.work.models import WorkItem
from apps.work.queries import deployments_with_goals
from apps.work.schemas import WorkItemSpec
from kernel.errors import NotFound, SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope

TRIALS = (50, 200, MOST_MESSAGES)
SHOWN_CHANGES = 100
LONGEST_SAMPLE = 5000
# Where gates stand in a turn, in order.
STAGES = (
    (GateTrigger.EVERY_USER_MESSAGE, gettext_lazy("Visitor message")),
    (GateTrigger.ON_CONTENT, gettext_lazy("Documents and tool results")),
    (GateTrigger.ON_TOOL_CALL, gettext_lazy("Tool use")),
    (GateTrigger.EVERY_AGENT_RESPONSE, gettext_lazy("Answer")),
)
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


@dataclass(frozen=True)
class Stage:
    """A column of the drawing: the active gates that stand there, with their addresses."""

    label: Promise
    gates: list[tuple[str, str]]


@dataclass(frozen=True)
class Tried:
    """What a gate does with a typed sample."""

    action: Promise
    reason: str
    rewritten: str


class PlaceForm(forms.Form):
    """Which chatbot a new gate is for."""

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
    stages = _stages(queries.active_versions(), governing)
    shown: dict[str, Any] = {"groups": groups, "none": not rows, "goals": goals, "halted": halted, "stages": stages}
    shown["templates"] = TEMPLATES.values()
    return page(request, "console/gates.html", at="gates", **shown)


def _stages(active: list[tuple[Gate, GateVersion]], governing: list[tuple[Deployment, WorkItem]]) -> list[Stage]:
    placed: dict[str, list[tuple[str, str]]] = {trigger: [] for trigger, _ in STAGES}
    for gate, version in active:
        if version.content.get("on") in placed:
            placed[version.content["on"]].append((gate.name, reverse("console-gate", args=[gate.pk])))
    for _, goal in governing:
        for spec in goal.spec.gates:
            if spec.on in placed:
                placed[spec.on].append((spec.name, f"#goal-{goal.pk}"))
    stages = [Stage(label, placed[trigger]) for trigger, label in STAGES]
    return stages if any(stage.gates for stage in stages) else []


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
@staff_view(Role.OWNER, scoped=False)
def new_from_template(request: StaffRequest, template: str) -> HttpResponseBase:
    return _save_and_test(request, lambda: _new(request, template))


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER, scoped=False)
def edit(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    """Edit a gate with its template; a gate that no template can show is edited in the administration."""
    return _save_and_test(request, lambda: _edit(request, gate_id))


def _save_and_test(request: StaffRequest, write: Callable[[], HttpResponseBase | GateVersion]) -> HttpResponseBase:
    """Call `write` in the tenant's scope and return its response. A draft that it returns instead is tested after the
    scope has ended."""
    with tenant_scope(request.member.tenant):
        written = write()
        if not isinstance(written, GateVersion):
            # Templates read rows, so they are rendered before the scope ends.
            return written.render() if isinstance(written, SimpleTemplateResponse) else written
    return _test(request, written.gate_id, written.number)


def _new(request: StaffRequest, template: str) -> HttpResponseBase | GateVersion:
    form_class = TEMPLATES.get(template)
    if form_class is None:
        raise NotFound()
    initial = {"name": queries.free_name(template)}
    form = form_class(request.POST or None, initial=initial, known_tools=_known_tools())
    return _answer(request, form, None, PlaceForm(request.POST or None))


def _edit(request: StaffRequest, gate_id: UUID) -> HttpResponseBase | GateVersion:
    row = queries.gate_by_id(gate_id)
    version = queries.version_of(row, row.newest)
    found = template_of(version)
    if found is None:
        refused = request.method == "POST"
        return page(request, "console/gate_advanced.html", at="gates", status=409 if refused else 200, gate=row)
    form_class, values = found
    known = _known_tools(version)
    form = form_class(request.POST or None, initial=values, escalation=str(values["on_block"]), known_tools=known)
    form.keep_name(row.name)
    return _answer(request, form, row, None)


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
    """Test a version on recorded messages."""
    return _test(request, gate_id, _number(request, "version"))


def _test(request: StaffRequest, gate_id: UUID, version: int) -> HttpResponseBase:
    """Test the version outside of any scope, because it can take a while."""
    chosen, many = request.POST.get("deployment", ""), request.POST.get("messages", "")
    result = backtest_version(
        request.member.tenant.pk,
        gate_id,
        version,
        actor=_actor(request),
        deployment_id=require_id(chosen) if chosen else None,
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


def _answer(
    request: StaffRequest, form: TemplateForm, row: Gate | None, place: PlaceForm | None
) -> HttpResponseBase | GateVersion:
    """Show the form, say what the gate would do, try it on a typed text, save a draft, or activate it. Returns the
    draft if it is to be tested."""
    wanted, sample = request.POST.get("do", ""), request.POST.get("sample", "")[:LONGEST_SAMPLE]
    valid = form.is_valid() and (place is None or place.is_valid())
    if request.method == "POST" and wanted in ("save", "activate", "test") and valid:
        chosen = place.cleaned_data["deployment"] if place else None
        where = row.deployment_id if row else chosen and chosen.pk
        try:
            version = _write(request, form, row, where, activate=wanted == "activate")
        except SilasError as refusal:
            return _form(request, form, row, place, refusal=refusal)
        return version if wanted == "test" else redirect("console-gate", version.gate_id)
    tried = _tried(form, sample) if valid and wanted == "try" and form.sample_label else None
    return _form(request, form, row, place, tried=tried, sample=sample)


def _write(
    request: StaffRequest, form: TemplateForm, row: Gate | None, deployment_id: UUID | None, *, activate: bool
) -> GateVersion:
    """Write a version, and activate it if wanted: both or none."""
    cleaned = form.cleaned_data
    with transaction.atomic():
        version = services.write_version(
            form.spec,
            deployment_id=deployment_id,
            order=cleaned["order"],
            actor=_actor(request),
            note=cleaned["note"],
            seen=cleaned["seen"] if row else 0,
        )
        if activate:
            services.activate(version.gate_id, version.number, actor=_actor(request))
    return version


def _form(
    request: StaffRequest,
    form: TemplateForm,
    row: Gate | None,
    place: PlaceForm | None,
    *,
    refusal: SilasError | None = None,
    tried: Tried | None = None,
    sample: str = "",
) -> HttpResponseBase:
    typing = request.POST.get("do") in ("try", "say")
    asked = (form, place) if place else (form,)
    wrong = refusal is not None or any(one.is_bound and not one.is_valid() for one in asked)
    escalation = str(form.initial.get("on_block") or "")
    shown = form if form.is_bound else type(form)(form.initial, escalation=escalation, known_tools=form.known_tools)
    return page(
        request,
        "console/gate_edit.html",
        at="gates",
        status=422 if wrong and not typing else 200,
        form=form,
        place=place,
        gate=row,
        refusal=refusal,
        wrong=wrong and not typing,
        sentence=shown.sentence() if shown.is_valid() else "",
        tried=tried,
        sample=sample,
    )


def _tried(form: TemplateForm, sample: str) -> Tried:
    context = form.sample_context(sample)
    result = PROVIDERS[form.spec.provider].evaluate(Request(form.spec, context, {}))
    changed = (result.modified_context or {}).values()
    reason = "" if result.code == GateCode.PASSED else str(result.code.label)
    return Tried(ACTIONS[result.action], reason, next((text for text in changed if isinstance(text, str)), ""))


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


def _known_tools(version: GateVersion | None = None) -> list[str]:
    """The names that a gate on tool use may have: the tools of the skills and servers here, the built-in ones, and
    those that the gate already has."""
    own = {tool.name for one in skills.active_versions() for tool in skills.tools_of(one)}
    named = (version.content.get("config") or {}).get("tools") or () if version else ()
    return sorted({*own, *toolservers.accepted_aliases(), WEB_SEARCH, MEMORY_TOOL, *map(str, named)})


def _number(request: HttpRequest, name: str) -> int:
    """Return the version number. Raises `NotFound` for anything else."""
    text = request.POST.get(name, "") or request.GET.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise NotFound()
    return int(text)


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
