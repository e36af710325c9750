"""How is a task set up, looked at, begun by hand and taken away? Owners and approvers change it, every member sees it.

What could not be stored leaves the form as it was filled in, with the reason.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.models import Task
from apps.autonomy.services import session_start, triggers
from apps.autonomy.services import tasks as tasks_of
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import names_for
from apps.console.task_forms import FOLDED, GROUPS, TaskForm, WhenForm, initial_of, initial_of_new, used
from apps.console.views.pages import mark_of, page
from apps.console.views.runs import begun, drawn
from apps.console.views.whens import When, points_of, preview, told_whens
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

SHOWN = 20
_SAID_IN_THE_FORM = (400, 403, 422)
# Of an amount, as rows keep it.
_DIGITS = 9


@require_safe
@staff_view()
def task(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    return _shown(request, queries.task(task_id), WhenForm())


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
    """What is being typed, in words, with its next three times. Stores nothing."""
    form = WhenForm(request.GET)
    return page(request, "console/_when.html", at="runs", when=_preview(form) if form.is_valid() else None, form=form)


@require_POST
@staff_view(*DECIDING_ROLES)
def run_now(request: StaffRequest, task_id: UUID) -> HttpResponseBase:
    cap = _dollars(request.POST.get("cap_usd", ""))
    return begun(request, session_start.run_now(task_id, user=request.member.user, cap_usd=cap, once=mark_of(request)))


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
    """One more time at which it runs."""
    try:
        with tenant_scope(request.member.tenant):
            form = WhenForm(request.POST, task=queries.task(task_id))
            if form.is_valid():
                _add(request, task_id, form)
                return redirect("console-task", task_id)
            refusal = None
    except SilasError as wrong:
        if wrong.status not in _SAID_IN_THE_FORM:
            raise
        refusal = wrong
    with tenant_scope(request.member.tenant):
        found = queries.task(task_id)
        form = WhenForm(request.POST, task=found)
        form.is_valid()
        return _shown(request, found, form, refusal=refusal).render()


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


def _shown(
    request: StaffRequest, found: Task, form: WhenForm, *, refusal: SilasError | None = None
) -> TemplateResponse:
    (glance,) = overview.task_overviews([found])
    sessions = queries.sessions(task_id=found.pk, limit=SHOWN)
    against = queries.spawn_refusal(found)
    return page(
        request,
        "console/task.html",
        at="runs",
        status=422 if refusal or form.errors else 200,
        glance=glance,
        task=found,
        whens=told_whens([list(glance.triggers)])[0],
        sessions=[drawn(one) for one in sessions],
        form=form,
        refusal=refusal,
        against=against,
        route=_route_words(found),
        may_ask=queries.delegates_of(found),
        opted=queries.has_opted_in(request.member.user.pk),
    )


def _route_words(found: Task) -> str:
    """Where the result goes, in a few words."""
    route = found.route
    if route["kind"] == "chain_next":
        following = f"task:{route['task']}"
        return f"Begins {names_for([following]).of(following)}"
    more = [words for name, words in (("email", "by e-mail"), ("webhook", "to webhooks")) if route.get(name)]
    words = {"silent": "Nowhere; the receipt is kept", "notify": "Its owner is told here"}.get(
        route["kind"], "It is proposed to be remembered"
    )
    return ", ".join([words, *more])


def _edited(request: StaffRequest, task_id: UUID | None) -> HttpResponseBase:
    """The form, or the task once it is stored. Storing has a scope of its own: a refusal takes all of it back."""
    refusal = None
    if request.method == "POST" and "preview" not in request.POST:
        try:
            with tenant_scope(request.member.tenant):
                stored = _store(request, task_id)
            if stored is not None:
                return redirect("console-task", stored)
        except SilasError as wrong:
            if wrong.status not in _SAID_IN_THE_FORM:
                raise
            refusal = wrong
    with tenant_scope(request.member.tenant):
        return _form_page(request, task_id, refusal).render()


def _store(request: StaffRequest, task_id: UUID | None) -> UUID | None:
    form, when = _forms(request, task_id)
    if not form.is_valid() or (when is not None and not when.is_valid()):
        return None
    stored = tasks_of.save_task(task_id, user=request.member.user, **form.said)
    if when is not None and when.kind_said != "manual":
        _add(request, stored.pk, when)
    return stored.pk


def _forms(request: StaffRequest, task_id: UUID | None) -> tuple[TaskForm, WhenForm | None]:
    """When it runs is asked with a new task only; later it stands on the task's page."""
    found = queries.task(task_id) if task_id else None
    initial = initial_of(found) if found else initial_of_new()
    given = request.POST if request.method == "POST" else None
    owner = found.owner_id if found and found.owner_id else request.member.user.pk
    form = TaskForm(given, owner_id=owner, task=found, initial=initial)
    return form, (WhenForm(given) if found is None else None)


def _form_page(request: StaffRequest, task_id: UUID | None, refusal: SilasError | None) -> TemplateResponse:
    form, when = _forms(request, task_id)
    wrong = (form.is_bound and not form.is_valid()) | (when is not None and when.is_bound and not when.is_valid())
    wanted = "preview" in request.POST
    groups = [(title, [form[name] for name in names if name in form.fields]) for title, names in GROUPS]
    return page(
        request,
        "console/task_edit.html",
        at="runs",
        status=422 if (wrong and not wanted) or refusal else 200,
        task=queries.task(task_id) if task_id else None,
        form=form,
        groups=[(title, fields, title in FOLDED and not _changed(form, fields)) for title, fields in groups],
        when_form=when,
        when=_preview(when) if wanted and when is not None and when.is_valid() else None,
        refusal=refusal,
        wrong=wrong and not wanted,
        opted=queries.has_opted_in(request.member.user.pk),
    )


def _changed(form: forms.Form, fields: list[forms.BoundField]) -> bool:
    plain = {"priority": 5, "max_attempts": 3}
    return used(field for field in fields if field.errors or str(field.value()) != str(plain.get(field.name)))


def _preview(form: WhenForm) -> When:
    spec = form.spec
    return preview(form.kind_said, spec, names_for(points_of(spec)))


def _add(request: StaffRequest, task_id: UUID, form: WhenForm) -> None:
    triggers.add_trigger(
        task_id,
        user=request.member.user,
        kind=form.kind_said,
        spec=form.spec,
        cap_usd=form.cleaned_data["cap_usd"],
    )


def _digits_after_point(amount: Decimal) -> int:
    return -int(amount.as_tuple().exponent)


def _dollars(text: str) -> Decimal | None:
    """Raises 422 for what is no amount; empty is no cap."""
    try:
        amount = Decimal(text) if text.strip() else None
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount is not None and (not amount.is_finite() or _digits_after_point(amount) > _DIGITS):
        raise SilasError("task_limits", "A cap is an amount of dollars, such as 0.50.", status=422)
    return amount
