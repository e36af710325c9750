"""Inbox rules: the list in the order in which they run, and the page of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.macros.forms import shown_step, step_groups, steps_from
from apps.inbox import inbox_rule_conditions, inbox_rule_preview, inbox_rules, steps
from apps.inbox.enums import ConditionField, ConditionOperator, Do, RuleMatch, RuleTrigger
from apps.inbox.inbox_rule_conditions import MAX_CONDITIONS, MAX_TEXT, Subjects
from apps.inbox.inbox_rules import MAX_MINUTES, MAX_POSITION, RuleFields
from apps.inbox.models import InboxRule
from apps.inbox.steps import MAX_STEPS, ME, Names
from apps.tenants.enums import Capability
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

# So many conditions and steps a form offers.
OFFERED = 4
# So many conversations of the last week are named.
SHOWN = 20
_TEXTS = (ConditionField.LANGUAGE, ConditionField.TEXT)


@require_safe
@staff_view()
def inbox_rules_page(request: StaffRequest) -> HttpResponseBase:
    names, subjects = Names(), Subjects()
    rows = [
        {
            "rule": row,
            "conditions": inbox_rule_conditions.describe(row.conditions, subjects),
            "steps": steps.describe(row.steps),
            "problem": inbox_rules.problem_of(row, names, subjects),
        }
        for row in inbox_rules.inbox_rules()
    ]
    return page(request, "console/inbox_rules.html", at="inbox", rows=rows)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def new_rule(request: StaffRequest) -> HttpResponseBase:
    return _rule(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.ADMINISTER)
def rule(request: StaffRequest, rule_id: UUID) -> HttpResponseBase:
    return _rule(request, inbox_rules.inbox_rule(rule_id))


@require_POST
@staff_view(Capability.ADMINISTER)
def activate(request: StaffRequest, rule_id: UUID) -> HttpResponseBase:
    """Activate the rule as it is saved, or deactivate it."""
    row = inbox_rules.lock_rule(request.member.user, rule_id)
    fields = replace(inbox_rules.fields_of(row), is_active=request.POST.get("active") == "1")
    inbox_rules.save_rule(request.member.user, fields, rule_id=rule_id)
    return redirect("console-inbox-rule", rule_id)


@require_POST
@staff_view(Capability.ADMINISTER)
def delete_rule(request: StaffRequest, rule_id: UUID) -> HttpResponseBase:
    inbox_rules.delete_rule(request.member.user, rule_id)
    return redirect("console-inbox-rules")


def _rule(request: StaffRequest, row: InboxRule | None) -> HttpResponseBase:
    refusal = None
    fields = inbox_rules.fields_of(row) if row else RuleFields("", RuleTrigger.MESSAGE, [], position=_next_position())
    if request.method == "POST":
        fields = _fields_from(request.POST, is_active=row is not None and row.is_active)
        try:
            saved = inbox_rules.save_rule(request.member.user, fields, rule_id=row.pk if row else None)
        except SilasError as error:
            if error.code in (ErrorCode.FORBIDDEN_ROLE, ErrorCode.NOT_FOUND):
                raise
            refusal = error
        else:
            return redirect(f"{request.path}?saved=1") if row else redirect("console-inbox-rule", saved.pk)
    subjects = Subjects()
    problem = inbox_rules.problem_of(row, Names(), subjects) if row and not refusal else ""
    preview = inbox_rule_preview.preview(row) if row and not (row.is_active or problem or refusal) else None
    return page(
        request,
        "console/inbox_rule.html",
        at="inbox",
        status=refusal.status if refusal else 200,
        row=row,
        fields=fields,
        refusal=refusal,
        problem=problem,
        preview=preview,
        shown=preview.matches[:SHOWN] if preview else (),
        saved="saved" in request.GET and refusal is None,
        triggers=RuleTrigger.choices,
        matches=RuleMatch.choices,
        most_minutes=MAX_MINUTES,
        most_position=MAX_POSITION,
        most_text=MAX_TEXT,
        condition_groups=_condition_groups(subjects),
        conditions=[_shown_condition(one) for one in _offered(fields.conditions, MAX_CONDITIONS)],
        groups=step_groups(without=(f"{Do.TAKE_OVER}:", f"{Do.ASSIGN}:{ME}")),
        steps=[shown_step(one) for one in _offered(fields.steps, MAX_STEPS)],
    )


def _next_position() -> int:
    rows = inbox_rules.inbox_rules()
    return min(rows[-1].position + 1, MAX_POSITION) if rows else 1


def _offered(given: Any, most: int) -> list[Any]:
    """The rows of a form: those that are given, and some that are empty."""
    return [*given, *({} for _ in range(max(OFFERED - len(given), 1)))][:most]


def _condition_groups(subjects: Subjects) -> list[tuple[str, list[tuple[str, str]]]]:
    """What a condition can be chosen from, by group; a value is the field, the operator and the field's value."""
    groups = []
    for field in ConditionField:
        choices = [("text", "…")] if field in _TEXTS else inbox_rule_conditions.choices_of(field, subjects)
        options = [
            (f"{field}:{operator}:{value}", f"{ConditionOperator(operator).label} {name}")
            for operator in inbox_rule_conditions.operators_of(field)
            for value, name in choices
        ]
        groups.append((str(field.label), options))
    return [group for group in groups if group[1]]


def _shown_condition(condition: dict[str, str]) -> dict[str, str]:
    """A condition as its row of the form has it."""
    if not condition:
        return {"pick": "", "text": ""}
    is_text = condition["field"] in _TEXTS
    value = "text" if is_text else condition["value"]
    return {
        "pick": f"{condition['field']}:{condition['operator']}:{value}",
        "text": condition["value"] if is_text else "",
    }


def _conditions_from(posted: QueryDict) -> list[dict[str, str]]:
    chosen = []
    for pick, text in zip(posted.getlist("condition"), posted.getlist("condition_text"), strict=False):
        field, _, rest = pick.partition(":")
        operator, _, value = rest.partition(":")
        if field:
            chosen.append({"field": field, "operator": operator, "value": text if field in _TEXTS else value})
    return chosen


def _fields_from(posted: QueryDict, *, is_active: bool) -> RuleFields:
    return RuleFields(
        name=posted.get("name", ""),
        trigger=posted.get("trigger", ""),
        steps=steps_from(posted),
        conditions=_conditions_from(posted),
        match=posted.get("match", ""),
        minutes=_number(posted, "minutes"),
        position=_number(posted, "position"),
        is_active=is_active,
    )


def _number(posted: QueryDict, name: str) -> int:
    text = posted.get(name, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
