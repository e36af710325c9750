"""What does a person fill in to write a gate? One form for the administration and the console.

It holds no rule: what is written becomes a `GateSpec`, and `soundness` says what is wrong with it, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from pydantic import ValidationError as SpecError

from apps.gates.differences import PROVIDERS, TRIGGERS, TYPES
from apps.gates.models import GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.services.versions import LONGEST_NOTE
from apps.gates.validation import problems_of

_RANGES = {"auto_approve": ("auto_from", "auto_to"), "require_approval": ("ask_from", "ask_to")}
_LISTS = ("allowed_values", "approval_values")
_LONGEST_JSON = 20_000


class GateForm(forms.Form):
    """`initial_of` fills it from a version; after `is_valid`, `spec` is the gate. No gate is renamed (`keep_name`)."""

    name = forms.RegexField(
        r"^[A-Za-z0-9_.-]{1,80}$", label="Name", error_messages={"invalid": "Letters, digits, dots, _ and - only."}
    )
    on = forms.ChoiceField(label="When", choices=list(TRIGGERS.items()))
    after_step = forms.IntegerField(
        label="After which step",
        help_text="Only for steps of a piece of work",
        required=False,
        min_value=1,
        max_value=1000,
    )
    provider = forms.ChoiceField(label="Who looks", choices=list(PROVIDERS.items()))
    type = forms.ChoiceField(label="What is asked", choices=list(TYPES.items()))
    check = forms.CharField(
        label="Detector or script",
        help_text="Empty for a rule. A detector: pii, secrets, toxicity and others",
        required=False,
        max_length=120,
    )
    extract = forms.CharField(
        label="Which value",
        help_text="Of a tool's call, such as amount; empty for the whole text",
        required=False,
        max_length=80,
    )
    auto_from = forms.FloatField(label="Allowed from", required=False)
    auto_to = forms.FloatField(label="to", required=False)
    ask_from = forms.FloatField(label="A person decides from", required=False)
    ask_to = forms.FloatField(label="to", required=False)
    block_low = forms.FloatField(label="Never below", required=False)
    block_high = forms.FloatField(label="Never above", required=False)
    allowed_values = forms.CharField(
        label="Allowed values", help_text="One a line", required=False, widget=forms.Textarea(attrs={"rows": 3})
    )
    approval_values = forms.CharField(
        label="Values a person decides",
        help_text="One a line",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    config = forms.CharField(
        label="Settings",
        help_text='JSON. A pattern: {"pattern": "..."}, and a text without it is a no. Words to keep out, with '
        '"Words, lengths and other checks": {"blocked_keywords": ["..."]}. '
        'A detector: {"on_fail": "fix"}. A model: {"policy": "..."}.',
        required=False,
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
    )
    check_command = forms.CharField(label="Command", required=False, max_length=500)
    check_expect = forms.CharField(
        label="What it must print",
        help_text='JSON, such as {"equals": "verified"}',
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    promote_to_policy = forms.BooleanField(label="A model's no is binding", required=False)
    on_block = forms.CharField(
        label="What follows a no",
        help_text="report tells you and answers politely; or the name of an escalation of the goal",
        initial="report",
        max_length=80,
    )
    order = forms.IntegerField(
        label="Place in the order", help_text="Lower ones look first", initial=100, min_value=0, max_value=32_767
    )
    note = forms.CharField(label="Why this change", required=False, max_length=LONGEST_NOTE)
    seen = forms.IntegerField(widget=forms.HiddenInput, initial=0, min_value=0)

    # Fields of a gate that the form asks under other names, for what is wrong with them.
    _ASKED_AS: ClassVar[Mapping[str, str]] = {
        "auto_approve": "auto_from",
        "require_approval": "ask_from",
        "block": "block_low",
    }
    spec: GateSpec
    named = ""

    def keep_name(self, name: str) -> None:
        self.fields.pop("name", None)
        self.named = name

    def clean_config(self) -> dict[str, Any]:
        config = _json(self.cleaned_data["config"]) or {}
        if not isinstance(config, dict):
            raise forms.ValidationError('Settings are an object, such as {"pattern": "..."}.')
        return config

    def clean_check_expect(self) -> Any:
        return _json(self.cleaned_data["check_expect"])

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        try:
            self.spec = GateSpec(**_values({"name": self.named, **cleaned}))
        except SpecError as wrong:
            for each in wrong.errors():
                self._complain(_field_of(each["loc"], each["msg"]), each["msg"])
            return cleaned
        for field, problem in problems_of(self.spec).items():
            self._complain(field, problem)
        return cleaned

    def _complain(self, field: str, problem: str) -> None:
        asked = self._ASKED_AS.get(field, field)
        sentence = problem.removeprefix("Value error, ")
        self.add_error(asked if asked in self.fields else None, f"{sentence[:1].upper()}{sentence[1:]}.")


def _field_of(place: Sequence[int | str], problem: str) -> str:
    """What is wrong with a whole gate is its step or a pattern of its settings."""
    if place:
        return str(place[0])
    return "after_step" if problem.endswith("after_step") else "config"


def initial_of(version: GateVersion) -> dict[str, Any]:
    """What the form shows of a version; a content that is no gate shows as far as it can be read."""
    content = version.content
    shown = {name: content.get(name) for name in GateForm.base_fields if name in content}
    for field, (low, high) in _RANGES.items():
        limits = content.get(field) or {}
        shown |= {low: limits.get("min"), high: limits.get("max")}
    outside = (content.get("block") or {}).get("outside") or (None, None)
    lists = {name: "\n".join(content.get(name) or ()) for name in _LISTS}
    expect = {name: value for name, value in (content.get("check_expect") or {}).items() if value is not None}
    texts = {"config": _shown(content.get("config")), "check_expect": _shown(expect)}
    named = {"name": version.gate.name, "order": version.order, "note": "", "seen": version.gate.newest}
    return {**shown, **lists, **texts, **named, "block_low": outside[0], "block_high": outside[1]}


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) if value else ""


def _values(cleaned: Mapping[str, Any]) -> dict[str, Any]:
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


def _json(text: str) -> Any:
    """Raises `ValidationError` for what is no JSON; NaN and the infinities are none."""
    if not text.strip():
        return None
    if len(text) > _LONGEST_JSON:
        raise forms.ValidationError("This is too long.")
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as wrong:
        raise forms.ValidationError("This is not JSON.") from wrong


def _no_number(word: str) -> None:
    raise ValueError(word)
