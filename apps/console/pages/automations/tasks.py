"""One automation: its page, its form, its triggers, and starting it manually.

Owners and approvers change automations, every member sees them. A refused form is shown again as filled in, with the
reason.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.models import Task
from apps.autonomy.services import session_start, triggers
from apps.autonomy.services import tasks as tasks_of
from apps.console.base import idempotency_key, page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.pages.automations.forms import (
    FOLDED,
    GROUPS,
    TaskForm,
    TriggerForm,
    has_input,
    initial_of,
    initial_of_new,
)
from apps.console.pages.automations.triggers import TriggerInWords, preview, references_in, triggers_in_words
from apps.console.pages.automations.views import after_start, run_line
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

SHOWN = 20
_SHOWN_IN_FORM = (400, 403, 422)
# Decimal places of amounts in the database.
_DECIMALS = 9


@require_safe
@staff_view()
def task(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    return _render(request, queries.task(task_id), TriggerForm())


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def new(request: StaffRequest) -> HttpResponseBase:
    return _edited(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES, scoped=False)
def edit(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    return _edited(request, task_id)


@require_safe
@staff_view(*DECIDING_ROLES)
def when_preview(request: StaffRequest) -> HttpResponseBase:
    """Describe the trigger that is being typed and its next three runs, without saving."""
    form = TriggerForm(request.GET)
    return page(request, "console/_when.html", at="runs", when=_preview(form) if form.is_valid() else None, form=form)


@require_POST
@staff_view(*DECIDING_ROLES)
def run_now(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    cap = _dollars(request.POST.get("cap_usd", ""))
    return after_start(
        request, session_start.run_now(task_id, user=request.member.user, cap_usd=cap, once=idempotency_key(request))
    )


@require_POST
@staff_view(*DECIDING_ROLES)
def release(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    tasks_of.release_task(task_id, user=request.member.user)
    return redirect("console-task", task_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def delete(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    tasks_of.delete_task(task_id, user=request.member.user)
    return redirect("console-runs")


@require_POST
@staff_view(*DECIDING_ROLES, scoped=False)
def add_when(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    """Add a trigger."""
    try:
        with tenant_scope(request.member.tenant):
            form = TriggerForm(request.POST, task=queries.task(task_id))
            if form.is_valid():
                _add(request, task_id, form)
                return redirect("console-task", task_id)
            refusal = None
    except SilasError as wrong:
        if wrong.status not in _SHOWN_IN_FORM:
            raise
        refusal = wrong
    with tenant_scope(request.member.tenant):
        row = queries.task(task_id)
        form = TriggerForm(request.POST, task=row)
        form.is_valid()
        return _render(request, row, form, refusal=refusal).render()


@require_POST
@staff_view(*DECIDING_ROLES)
def turn_when(request: StaffRequest, trigger_id: UUID) -> HttpResponseBase:
    """On or off."""
    enabled = request.POST.get("enabled") == "1"
    changed = triggers.change_trigger(trigger_id, user=request.member.user, enabled=enabled)
    return redirect("console-task", changed.task_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def delete_when(request: StaffRequest, trigger_id: UUID) -> HttpResponseBase:
    task_id = overview.trigger(trigger_id).task_id
    triggers.delete_trigger(trigger_id, user=request.member.user)
    return redirect("console-task", task_id)


def _render(
    request: StaffRequest, row: Task, form: TriggerForm, *, refusal: SilasError | None = None
) -> TemplateResponse:
    (glance,) = overview.task_overviews([row])
    sessions = queries.sessions(task_id=row.pk, limit=SHOWN)
    against = queries.spawn_refusal(row)
    return page(
        request,
        "console/task.html",
        at="runs",
        status=422 if refusal or form.errors else 200,
        glance=glance,
        task=row,
        whens=triggers_in_words([list(glance.triggers)])[0],
        sessions=[run_line(session) for session in sessions],
        form=form,
        refusal=refusal,
        against=against,
        route=_route_words(row),
        may_ask=queries.delegates_of(row),
        opted=queries.has_opted_in(request.member.user.pk),
        **_findings(row),
    )


def _findings(row: Task) -> dict[str, object]:
    """Return the open findings of the automation, the earlier ones, and the keys of those that came back."""
    found = queries.findings(task_id=row.pk, limit=queries.MOST)
    past = [finding for finding in found if not finding.is_open]
    return {
        "open_findings": [finding for finding in found if finding.is_open],
        "past_findings": past[:SHOWN],
        "returned": {finding.key for finding in past if finding.key},
    }


def _route_words(row: Task) -> str:
    """Return where the result goes, in a few words."""
    route = row.route
    if route["kind"] == "chain_next":
        following = f"task:{route['task']}"
        return _("Starts {automation}").format(automation=names_for([following]).of(following))
    also = [words for name, words in (("email", _("by email")), ("webhook", _("to webhooks"))) if route.get(name)]
    words = {"silent": _("Receipt only"), "notify": _("Notifies its owner")}.get(
        route["kind"], _("Proposed as a memory")
    )
    return ", ".join([words, *also])


def _edited(request: StaffRequest, task_id: UUID | None) -> HttpResponseBase:
    """Show the form, or save. Saving has a scope of its own, so that a refusal rolls back all of it."""
    refusal = None
    if request.method == "POST" and "preview" not in request.POST:
        try:
            with tenant_scope(request.member.tenant):
                stored = _store(request, task_id)
            if stored is not None:
                return redirect("console-task", stored)
        except SilasError as wrong:
            if wrong.status not in _SHOWN_IN_FORM:
                raise
            refusal = wrong
    with tenant_scope(request.member.tenant):
        return _form_page(request, task_id, refusal).render()


def _store(request: StaffRequest, task_id: UUID | None) -> UUID | None:
    form, when = _forms(request, task_id)
    if not form.is_valid() or (when is not None and not when.is_valid()):
        return None
    stored = tasks_of.save_task(task_id, user=request.member.user, **form.values)
    if when is not None and when.trigger_kind != "manual":
        _add(request, stored.pk, when)
    return stored.pk


def _forms(request: StaffRequest, task_id: UUID | None) -> tuple[TaskForm, TriggerForm | None]:
    """Return the forms; the trigger form only for a new automation, because later triggers have their own page."""
    row = queries.task(task_id) if task_id else None
    initial = initial_of(row) if row else initial_of_new()
    data = request.POST if request.method == "POST" else None
    owner = row.owner_id if row and row.owner_id else request.member.user.pk
    form = TaskForm(data, owner_id=owner, task=row, initial=initial)
    return form, (TriggerForm(data) if row is None else None)


def _form_page(request: StaffRequest, task_id: UUID | None, refusal: SilasError | None) -> TemplateResponse:
    form, when = _forms(request, task_id)
    wrong = (form.is_bound and not form.is_valid()) | (when is not None and when.is_bound and not when.is_valid())
    is_preview = "preview" in request.POST
    groups = [(title, [form[name] for name in names if name in form.fields]) for title, names in GROUPS]
    return page(
        request,
        "console/task_edit.html",
        at="runs",
        status=422 if (wrong and not is_preview) or refusal else 200,
        task=queries.task(task_id) if task_id else None,
        form=form,
        groups=[(title, fields, title in FOLDED and not _is_changed(form, fields)) for title, fields in groups],
        foldable=FOLDED,
        when_form=when,
        when=_preview(when) if is_preview and when is not None and when.is_valid() else None,
        refusal=refusal,
        wrong=wrong and not is_preview,
        opted=queries.has_opted_in(request.member.user.pk),
    )


def _is_changed(form: forms.Form, fields: list[forms.BoundField]) -> bool:
    defaults = {"priority": 5, "max_attempts": 3}
    return has_input(field for field in fields if field.errors or str(field.value()) != str(defaults.get(field.name)))


def _preview(form: TriggerForm) -> TriggerInWords:
    spec = form.spec
    return preview(form.trigger_kind, spec, names_for(references_in(spec)))


def _add(request: StaffRequest, task_id: UUID, form: TriggerForm) -> None:
    triggers.add_trigger(
        task_id,
        user=request.member.user,
        kind=form.trigger_kind,
        spec=form.spec,
        cap_usd=form.cleaned_data["cap_usd"],
    )


def _dollars(text: str) -> Decimal | None:
    """Return the amount, or None for empty text. Raises `SilasError`: `task_limits` 422."""
    try:
        amount = Decimal(text) if text.strip() else None
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount is not None and (not amount.is_finite() or -int(amount.as_tuple().exponent) > _DECIMALS):
        raise SilasError(ErrorCode.TASK_LIMITS, _("Enter the cap as an amount in dollars, such as 0.50."))
    return amount
