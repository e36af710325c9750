"""What does policy say, what would a change do, and who changed it? For owners: gates with their versions.

Writing, trying and activating are three steps on purpose; nothing is in force until its own button is pressed.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.views.pages import page
from apps.gates import queries, services
from apps.gates.differences import TRIGGERS, Difference, Line, differences, lines_of
from apps.gates.enums import GateProvider, GateStatus, GateTrigger
from apps.gates.forms import GateForm, initial_of
from apps.gates.models import Gate, GateVersion
from apps.gates.schemas import GateSpec
from apps.sessions.gate_backtest import MOST_ASKED, MOST_MESSAGES, Rehearsal, rehearse
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from apps.work.queries import deployments_with_goals
from apps.work.schemas import WorkItemSpec
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

TRIALS = (50, 200, MOST_MESSAGES)
SHOWN_CHANGES = 100
# Which fields of the form belong together, and what they are about.
GROUPS = (
    ("Where it looks", ("name", "deployment", "on", "after_step", "extract")),
    ("What decides", ("provider", "type", "check", "config")),
    ("Limits of a number", ("auto_from", "auto_to", "ask_from", "ask_to", "block_low", "block_high")),
    ("Values", ("allowed_values", "approval_values")),
    ("Scripts and models", ("check_command", "check_expect", "promote_to_policy")),
    ("What follows", ("on_block", "order", "note")),
)
# Groups that most gates do not need: folded until something stands in them.
FOLDED = ("Limits of a number", "Values", "Scripts and models")
UNTRIED = {
    "llm": "It asks a model, and nobody said that it may be asked. Nothing was tried.",
    "after_step": "What steps of work returned is not kept for this. Nothing was tried.",
    "nothing_recorded": "Nothing of this kind is on record here yet.",
}
ACTIONS = {"continue": "Passes", "block": "Blocked", "require_approval": "A person decides"}


class NewGateForm(GateForm):
    """A gate that does not exist yet also has a place."""

    deployment: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label="Where", required=False, empty_label="All deployments"
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
    goals = [(place, goal, [_told_gate(goal.spec, gate) for gate in goal.spec.gates]) for place, goal in governing]
    halted = queries.gates_missing_library([gate for _, goal in governing for gate in goal.spec.gates])
    return page(request, "console/gates.html", at="gates", groups=groups, none=not rows, goals=goals, halted=halted)


def _told_gate(goal: WorkItemSpec, gate: GateSpec) -> dict[str, Any]:
    """A gate that stands in the file of a goal: its lines, and what the visitor reads after a no."""
    lines = [line for line in lines_of(gate.model_dump(mode="json"), order=0) if line.field != "order"]
    follows = goal.escalation.get(gate.on_block)
    said = follows.message if follows else ""
    return {"name": gate.name, "trigger": TRIGGERS[GateTrigger(gate.on)], "lines": lines, "said": said}


_SHOWN = (GateStatus.ACTIVE, GateStatus.DRAFT, GateStatus.RETIRED)


@require_safe
@staff_view(Role.OWNER)
def gate(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    return _shown(request, queries.gate_by_id(gate_id))


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def new(request: StaffRequest) -> HttpResponseBase:
    form = NewGateForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _form(request, form, None)
    place = form.cleaned_data["deployment"]
    return _written(request, form, None, deployment_id=place.pk if place else None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def edit(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    found = queries.gate_by_id(gate_id)
    form = GateForm(request.POST or None, initial=initial_of(queries.version_of(found, found.newest)))
    form.keep_name(found.name)
    if request.method != "POST" or not form.is_valid():
        return _form(request, form, found)
    return _written(request, form, found, deployment_id=found.deployment_id)


@require_safe
@staff_view(Role.OWNER)
def compare(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    found = queries.gate_by_id(gate_id)
    old = queries.version_of(found, _number(request, "before"))
    later = _number(request, "after") if "after" in request.GET else found.active or found.newest
    new = queries.version_of(found, later)
    return page(
        request, "console/gate_compare.html", at="gates", gate=found, old=old, new=new, lines=_between(old, new)
    )


@require_POST
@staff_view(Role.OWNER, scoped=False)
def dry_run(request: StaffRequest, gate_id: UUID) -> HttpResponseBase:
    """Outside of any scope: deciding takes its time."""
    chosen, many = request.POST.get("deployment", ""), request.POST.get("messages", "")
    done = rehearse(
        request.member.tenant.pk,
        gate_id,
        _number(request, "version"),
        actor=_actor(request),
        deployment_id=_uuid(chosen) if chosen else None,
        messages=int(many) if many in map(str, TRIALS) else TRIALS[1],
        ask_models="ask_models" in request.POST,
    )
    with tenant_scope(request.member.tenant):
        return page(request, "console/gate_tried.html", at="gates", **_told(done)).render()


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


def _shown(request: StaffRequest, found: Gate) -> HttpResponseBase:
    versions = queries.versions_of(found)
    called = names_for(version.written_by for version in versions)
    newest, active = versions[0], next((one for one in versions if one.number == found.active), None)
    draft = newest if active is not newest else None
    return page(
        request,
        "console/gate.html",
        at="gates",
        gate=found,
        active=active,
        lines=_told_lines(active or newest),
        draft=draft,
        changes=_between(active, draft) if active and draft else (),
        versions=[(version, called.of(version.written_by)) for version in versions],
        trials=TRIALS,
        deployments=Deployment.objects.order_by("title") if found.deployment_id is None else (),
        asks_a_model=newest.content.get("provider") == GateProvider.LLM,
        most_asked=MOST_ASKED,
    )


def _form(request: StaffRequest, form: GateForm, found: Gate | None, refusal: Any = None) -> HttpResponseBase:
    groups = [(title, [form[name] for name in names if name in form.fields]) for title, names in GROUPS]
    folded = [(title, fields, title in FOLDED and not any(map(_is_used, fields))) for title, fields in groups]
    wrong = bool(form.errors) or refusal is not None
    shown = {"form": form, "groups": folded, "foldable": FOLDED, "gate": found, "refusal": refusal}
    return page(request, "console/gate_edit.html", at="gates", status=422 if wrong else 200, **shown)


def _is_used(field: forms.BoundField) -> bool:
    return bool(field.errors) or field.value() not in (None, "", False)


def _written(
    request: StaffRequest, form: GateForm, found: Gate | None, *, deployment_id: UUID | None
) -> HttpResponseBase:
    said = form.cleaned_data
    seen = said["seen"] if found else 0
    try:
        version = services.write_version(
            form.spec,
            deployment_id=deployment_id,
            order=said["order"],
            actor=_actor(request),
            note=said["note"],
            seen=seen,
        )
    except SilasError as refusal:
        return _form(request, form, found, refusal)
    return redirect("console-gate", version.gate_id)


def _told(done: Rehearsal) -> dict[str, Any]:
    before, after = done.before or {}, done.after or {}
    counts = [(words, before.get(action, 0), after.get(action, 0)) for action, words in ACTIONS.items()]
    return {
        "done": done,
        "gate": done.gate,
        "counts": counts,
        "untried": UNTRIED.get(done.untried, done.untried),
        "changes": done.changes[:SHOWN_CHANGES],
        "more": len(done.changes) - SHOWN_CHANGES,
    }


def _between(old: GateVersion, new: GateVersion) -> tuple[Difference, ...]:
    return differences(old.content, new.content, old_order=old.order, new_order=new.order)


def _told_lines(version: GateVersion) -> list[Line]:
    return lines_of(version.content, order=version.order)


def _trigger(version: GateVersion) -> str:
    on = version.content.get("on")
    return TRIGGERS.get(on, "") if isinstance(on, str) else ""  # type: ignore[call-overload]  # as stored


def _number(request: HttpRequest, name: str) -> int:
    """Raises `NotFound` for what is no number of a version."""
    text = request.POST.get(name, "") or request.GET.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise NotFound("version of this gate")
    return int(text)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound("deployment") from None


def _actor(request: StaffRequest) -> str:
    return f"user:{request.member.user.pk}"
