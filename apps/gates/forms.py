"""The form for gates, shared by the administration and the console.

It has no rules of its own: the input becomes a `GateSpec`, and `validation` reports problems by field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from pydantic import ValidationError as SpecError

from apps.gates.differences import PROVIDER_LABELS, TRIGGERS, TYPES
from apps.gates.models import GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.services.versions import LONGEST_NOTE
from apps.gates.validation import problems_of
from kernel.language import gettext, gettext_lazy

_RANGES = {"auto_approve": ("auto_from", "auto_to"), "require_approval": ("ask_from", "ask_to")}
_LISTS = ("allowed_values", "approval_values")
_LONGEST_JSON = 20_000


class GateForm(forms.Form):
    """`initial_of` fills it from a version; after `is_valid`, `spec` is the gate.

    Gates are not renamed (`keep_name`).
    """

    name = forms.RegexField(
        r"^[A-Za-z0-9_.-]{1,80}$",
        label=gettext_lazy("Name"),
        error_messages={"invalid": gettext_lazy("Use letters, digits, dots, _ and - only.")},
    )
    on = forms.ChoiceField(label=gettext_lazy("When"), choices=list(TRIGGERS.items()))
    after_step = forms.IntegerField(
        label=gettext_lazy("After which step"),
        help_text=gettext_lazy("Only for steps of work items"),
        required=False,
        min_value=1,
        max_value=1000,
    )
    provider = forms.ChoiceField(label=gettext_lazy("Check"), choices=list(PROVIDER_LABELS.items()))
    type = forms.ChoiceField(label=gettext_lazy("Condition"), choices=list(TYPES.items()))
    check = forms.CharField(
        label=gettext_lazy("Detector or script"),
        help_text=gettext_lazy("Empty for a rule. Detectors: pii, secrets, toxicity and others"),
        required=False,
        max_length=120,
    )
    extract = forms.CharField(
        label=gettext_lazy("Value"),
        help_text=gettext_lazy("An argument of the tool call, such as amount. Empty for the whole text"),
        required=False,
        max_length=80,
    )
    auto_from = forms.FloatField(label=gettext_lazy("Allowed from"), required=False)
    auto_to = forms.FloatField(label=gettext_lazy("to"), required=False)
    ask_from = forms.FloatField(label=gettext_lazy("Needs approval from"), required=False)
    ask_to = forms.FloatField(label=gettext_lazy("to"), required=False)
    block_low = forms.FloatField(label=gettext_lazy("Never below"), required=False)
    block_high = forms.FloatField(label=gettext_lazy("Never above"), required=False)
    allowed_values = forms.CharField(
        label=gettext_lazy("Allowed values"),
        help_text=gettext_lazy("One per line"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    approval_values = forms.CharField(
        label=gettext_lazy("Values that need approval"),
        help_text=gettext_lazy("One per line"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    config = forms.CharField(
        label=gettext_lazy("Settings"),
        help_text=gettext_lazy(
            'JSON. A pattern that must be found: {"pattern": "..."}. Blocked keywords, with "Keywords,'
            ' length and other checks": {"blocked_keywords": ["..."]}. A detector: {"on_fail": "fix"}.'
            ' A model: {"policy": "..."}.'
        ),
        required=False,
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
    )
    check_command = forms.CharField(label=gettext_lazy("Command"), required=False, max_length=500)
    check_expect = forms.CharField(
        label=gettext_lazy("Expected output"),
        help_text=gettext_lazy('JSON, such as {"equals": "verified"}'),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    promote_to_policy = forms.BooleanField(label=gettext_lazy("Model verdict is binding"), required=False)
    on_block = forms.CharField(
        label=gettext_lazy("If it fails"),
        help_text=gettext_lazy("report notifies you and answers politely; or the name of an escalation of the goal"),
        initial="report",
        max_length=80,
    )
    order = forms.IntegerField(
        label=gettext_lazy("Order"),
        help_text=gettext_lazy("Lower numbers run first"),
        initial=100,
        min_value=0,
        max_value=32_767,
    )
    note = forms.CharField(label=gettext_lazy("Reason for this change"), required=False, max_length=LONGEST_NOTE)
    seen = forms.IntegerField(widget=forms.HiddenInput, initial=0, min_value=0)

    # Form fields that show the problems of gate fields with other names.
    _FORM_FIELDS: ClassVar[Mapping[str, str]] = {
        "auto_approve": "auto_from",
        "require_approval": "ask_from",
        "block": "block_low",
    }
    spec: GateSpec
    named = ""

    def keep_name(self, name: str) -> None:
        self.fields.pop("name", None)
        self.named = name

    def clean_config(self) -> dict[str, object]:
        config = _parse_json(self.cleaned_data["config"]) or {}
        if not isinstance(config, dict):
            raise forms.ValidationError(gettext('Settings are an object, such as {"pattern": "..."}.'))
        return config

    def clean_check_expect(self) -> object:
        return _parse_json(self.cleaned_data["check_expect"])

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        try:
            self.spec = GateSpec(**_values({"name": self.named, **cleaned}))
        except SpecError as wrong:
            for error in wrong.errors():
                self._add_problem(_field_of(error["loc"], error["msg"]), error["msg"])
            return cleaned
        for field, problem in problems_of(self.spec).items():
            self._add_problem(field, problem)
        return cleaned

    def _add_problem(self, field: str, problem: str) -> None:
        name = self._FORM_FIELDS.get(field, field)
        sentence = problem.removeprefix("Value error, ")
        self.add_error(name if name in self.fields else None, f"{sentence[:1].upper()}{sentence[1:]}.")


def _field_of(place: Sequence[int | str], problem: str) -> str:
    """The field of a problem; problems of the whole gate concern its step or a pattern in its settings."""
    if place:
        return str(place[0])
    return "after_step" if problem.endswith("after_step") else "config"


def initial_of(version: GateVersion) -> dict[str, object]:
    """Initial data from a version; an invalid content is shown as far as possible."""
    content = version.content
    fields = {name: content.get(name) for name in GateForm.base_fields if name in content}
    for field, (low, high) in _RANGES.items():
        limits = content.get(field) or {}
        fields |= {low: limits.get("min"), high: limits.get("max")}
    outside = (content.get("block") or {}).get("outside") or (None, None)
    lists = {name: "\n".join(content.get(name) or ()) for name in _LISTS}
    expect = {name: value for name, value in (content.get("check_expect") or {}).items() if value is not None}
    texts = {"config": _as_json(content.get("config")), "check_expect": _as_json(expect)}
    named = {"name": version.gate.name, "order": version.order, "note": "", "seen": version.gate.newest}
    return {**fields, **lists, **texts, **named, "block_low": outside[0], "block_high": outside[1]}


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


def _values(cleaned: Mapping[str, object]) -> dict[str, Any]:
    values = {
        name: value for name, value in cleaned.items() if name in GateSpec.model_fields and value not in ("", None)
    }
    for name in _LISTS:
        lines = [line.strip() for line in str(cleaned.get(name) or "").splitlines()]
        values[name] = [line for line in lines if line] or None
    for field, (low, high) in _RANGES.items():
        if cleaned.get(low) is not None or cleaned.get(high) is not None:
            values[field] = {"min": cleaned.get(low), "max": cleaned.get(high)}
    if cleaned.get("block_low") is not None or cleaned.get("block_high") is not None:
        values["block"] = {"outside": (cleaned.get("block_low"), cleaned.get("block_high"))}
    return values


def _parse_json(text: str) -> object:
    """Parse JSON; NaN and infinities are refused. Raises `ValidationError`."""
    if not text.strip():
        return None
    if len(text) > _LONGEST_JSON:
        raise forms.ValidationError(gettext("This is too long."))
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as wrong:
        raise forms.ValidationError(gettext("This is not JSON.")) from wrong


def _refuse_constant(word: str) -> None:
    raise ValueError(word)
