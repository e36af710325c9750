"""Forms with which a member asks the visitor a question, a form or confidential details, and the preview of the card.

They only read and check what is typed; what may be asked is decided by `visitors.prompts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ValidationError as SchemaError

from apps.visitors.enums import FieldKind
from apps.visitors.prompt_forms import MOST_CHOICES, MOST_FIELDS, FormWanted
from apps.visitors.prompts import Asked, Question, SecretWanted
from kernel.unicode_safety import has_hidden_characters, replace_unstorable

MAX_ANSWERS, MAX_CHARS = 8, 80
EXPIRIES = (
    (3600, gettext_lazy("an hour")),
    (86_400, gettext_lazy("a day")),
    (3 * 86_400, gettext_lazy("three days")),
    (7 * 86_400, gettext_lazy("a week")),
)
KINDS = (
    ("choice", gettext_lazy("Choice")),
    ("yes", gettext_lazy("Yes or no")),
    ("form", gettext_lazy("Form")),
    ("secret", gettext_lazy("Confidential details")),
)
CONFIRMATIONS = (
    ("low", gettext_lazy("One click")),
    ("medium", gettext_lazy("Click and confirm")),
    ("high", gettext_lazy("Slide and confirm")),
)
# The fields of each kind; the others belong to all kinds.
FIELDS_OF_KIND = {
    "choice": ("question", "rationale", "answers", "own_words", "risk"),
    "yes": ("question", "rationale", "yes", "no", "risk"),
    "form": ("question", "rationale"),
    "secret": ("label", "instructions", "hint"),
}
_REQUIRED = {
    "form": ("question",),
    "choice": ("question", "answers"),
    "yes": ("question", "yes", "no"),
    "secret": ("label", "instructions"),
}
# Rows of a form that are shown before "More fields" is opened.
ROWS_SHOWN_AT_FIRST = 3
_ROW_NUMBERS = range(1, MOST_FIELDS + 1)
_HIDDEN_CHARACTERS = gettext_lazy("This text contains hidden or look-alike characters.")


@dataclass(frozen=True)
class Row:
    """One field of a form for the visitor."""

    label: str
    kind: str
    required: bool
    choices: tuple[str, ...]

    @property
    def kind_label(self) -> str:
        return str(FieldKind(self.kind).label) if self.kind in FieldKind.values else ""


@dataclass(frozen=True)
class Preview:
    """The card as the visitor will see it; `press` says how to answer where that takes more than one click."""

    title: str
    text: str
    answers: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    field: str = ""
    own_words: bool = False
    press: str = ""
    waits: str = ""

    @property
    def last(self) -> str:
        """The answer that changes nothing."""
        return self.answers[-1] if self.answers else ""


class AskForm(forms.Form):
    """The whole form; after `is_valid`, `request` is what `ask_visitor` takes."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Type of request"), choices=KINDS, widget=forms.RadioSelect, initial="choice"
    )
    question = forms.CharField(label=gettext_lazy("Question"), max_length=500, required=False)
    rationale = forms.CharField(label=gettext_lazy("Why you ask (optional)"), max_length=500, required=False)
    answers = forms.CharField(
        label=gettext_lazy("Answers"),
        help_text=format_lazy(
            gettext_lazy("One per line, up to {number}. The last answer is the one that changes nothing."),
            number=MAX_ANSWERS,
        ),
        max_length=MAX_ANSWERS * (MAX_CHARS + 2),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    yes = forms.CharField(
        label=gettext_lazy("Button to agree"), max_length=MAX_CHARS, required=False, initial=gettext_lazy("Yes")
    )
    no = forms.CharField(
        label=gettext_lazy("Button to refuse"), max_length=MAX_CHARS, required=False, initial=gettext_lazy("No")
    )
    own_words = forms.BooleanField(label=gettext_lazy("Also allow a free-text answer"), required=False)
    risk = forms.ChoiceField(label=gettext_lazy("Confirmation"), choices=CONFIRMATIONS, required=False, initial="low")
    label = forms.CharField(label=gettext_lazy("Details needed"), max_length=120, required=False)
    instructions = forms.CharField(
        label=gettext_lazy("Where to find it, or why you need it"), max_length=1000, required=False
    )
    hint = forms.CharField(label=gettext_lazy("Example (optional)"), max_length=80, required=False)
    seconds = forms.TypedChoiceField(
        label=gettext_lazy("Expires after"),
        choices=[(str(seconds), words) for seconds, words in EXPIRIES],
        coerce=int,
        initial="86400",
    )

    request: Asked

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(row_fields())

    @property
    def preview(self) -> Preview:
        """The preview of what is typed so far, valid or not."""
        kind = self.typed("kind")
        expires = {str(seconds): str(words) for seconds, words in EXPIRIES}.get(self.typed("seconds"), _("a day"))
        if kind == "secret":
            hint = self.typed("hint") or _("Confidential details")
            return Preview(self.typed("label"), self.typed("instructions"), field=hint, waits=expires)
        if kind == "form":
            rows = tuple(row for _number, row in rows_of(self.typed))
            return Preview(self.typed("question"), self.typed("rationale"), rows=rows, waits=expires)
        answers = tuple(_lines(self.typed("answers"))) if kind == "choice" else (self.typed("yes"), self.typed("no"))
        risk = self.typed("risk")
        return Preview(
            self.typed("question"),
            self.typed("rationale"),
            answers[:MAX_ANSWERS],
            own_words=kind == "choice" and bool(self.typed("own_words")),
            press="" if risk in ("", "low") else str(dict(CONFIRMATIONS).get(risk, "")),
            waits=expires,
        )

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        kind = cleaned.get("kind", "")
        for name in FIELDS_OF_KIND.get(kind, ()):
            value = cleaned.get(name)
            if not value and name in _REQUIRED[kind]:
                self.add_error(name, _("This field is required."))
            elif isinstance(value, str) and has_hidden_characters([value]):
                self.add_error(name, str(_HIDDEN_CHARACTERS))
        if kind == "choice" and "answers" not in self.errors:
            self._check_answers(cleaned["answers"])
        if kind == "form":
            for name, problem in row_problems(rows_of(self.typed)):
                self.add_error(name, problem)
        if not self.errors:
            try:
                self.request = self._as_request(kind)
            except SchemaError:
                self.add_error(None, _("This request can't be sent. Check the fields."))
        return cleaned

    def _check_answers(self, text: str) -> None:
        lines = _lines(text)
        if len(lines) > MAX_ANSWERS:
            self.add_error("answers", _("At most {number} answers.").format(number=MAX_ANSWERS))
        elif any(len(line) > MAX_CHARS for line in lines):
            self.add_error("answers", _("An answer has at most {number} characters.").format(number=MAX_CHARS))
        elif len({line.casefold() for line in lines}) != len(lines):
            self.add_error("answers", _("Two answers are the same."))

    def _as_request(self, kind: str) -> Asked:
        cleaned = self.cleaned_data
        if kind == "secret":
            return SecretWanted.model_validate(
                {
                    "label": replace_unstorable(cleaned["label"]),
                    "input_hint": replace_unstorable(cleaned["hint"]),
                    "guidance": {"instructions": replace_unstorable(cleaned["instructions"])},
                    "seconds": cleaned["seconds"],
                }
            )
        shared = {
            "question": replace_unstorable(cleaned["question"]),
            "rationale": replace_unstorable(cleaned["rationale"]),
            "seconds": cleaned["seconds"],
        }
        if kind == "form":
            return FormWanted.model_validate({**shared, "fields": rows_as_fields(rows_of(self.typed))})
        is_choice = kind == "choice"
        labels = _lines(cleaned["answers"]) if is_choice else [cleaned["yes"], cleaned["no"]]
        values = [f"answer_{number}" for number in range(1, len(labels) + 1)] if is_choice else ["yes", "no"]
        options = [
            {"value": value, "label": replace_unstorable(label)} for value, label in zip(values, labels, strict=True)
        ]
        return Question.model_validate(
            {
                **shared,
                "options": options,
                "allow_freetext": is_choice and cleaned["own_words"],
                "risk_level": cleaned["risk"] or "low",
            }
        )

    def typed(self, name: str) -> str:
        """Return what is in a field so far, valid or not."""
        if self.is_bound:
            return replace_unstorable(str(self.data.get(self.add_prefix(name), "")).strip())
        return str(self.get_initial_for_field(self.fields[name], name) or "")


def row_fields() -> dict[str, forms.Field]:
    """Return the form fields of all rows, by name."""
    fields: dict[str, forms.Field] = {}
    for number in _ROW_NUMBERS:
        fields[f"label_{number}"] = forms.CharField(
            label=_("Field {number}").format(number=number), max_length=120, required=False
        )
        fields[f"takes_{number}"] = forms.ChoiceField(
            label=_("Type"), choices=FieldKind.choices, required=False, initial=FieldKind.TEXT
        )
        fields[f"choices_{number}"] = forms.CharField(
            label=_("Choices, separated by semicolons"),
            max_length=MOST_CHOICES * (MAX_CHARS + 2),
            required=False,
        )
        fields[f"required_{number}"] = forms.BooleanField(label=_("Required"), required=False)
    return fields


def row_names(number: int) -> tuple[str, ...]:
    return tuple(f"{part}_{number}" for part in ("label", "takes", "choices", "required"))


def rows_of(typed: Callable[[str], str]) -> list[tuple[int, Row]]:
    """Return the rows that have a label, with their numbers; `typed` returns the text of a field by name."""
    rows = [
        (
            number,
            Row(
                label=typed(f"label_{number}"),
                kind=typed(f"takes_{number}") or FieldKind.TEXT,
                required=bool(typed(f"required_{number}")),
                choices=tuple(choice.strip() for choice in typed(f"choices_{number}").split(";") if choice.strip()),
            ),
        )
        for number in _ROW_NUMBERS
    ]
    return [(number, row) for number, row in rows if row.label]


def row_problems(rows: list[tuple[int, Row]]) -> list[tuple[str, str]]:
    """Return the problems of the rows as (field name, message)."""
    if not rows:
        return [("label_1", _("A form needs at least one field."))]
    problems, labels = [], set()
    for number, row in rows:
        if has_hidden_characters([row.label, *row.choices]):
            problems.append((f"label_{number}", str(_HIDDEN_CHARACTERS)))
        elif row.label in labels:
            problems.append((f"label_{number}", _("Two fields have the same label.")))
        elif row.kind == FieldKind.CHOICE and (problem := _choice_problem(row.choices)):
            problems.append((f"choices_{number}", problem))
        labels.add(row.label)
    return problems


def rows_as_fields(rows: list[tuple[int, Row]]) -> list[dict[str, object]]:
    """Return the rows as `FormWanted` takes its fields."""
    return [
        {
            "name": f"field_{number}",
            "label": replace_unstorable(row.label),
            "kind": row.kind,
            "required": row.required,
            "choices": [replace_unstorable(choice) for choice in row.choices] if row.kind == FieldKind.CHOICE else [],
        }
        for number, row in rows
    ]


def _choice_problem(choices: tuple[str, ...]) -> str:
    if not 2 <= len(choices) <= MOST_CHOICES:
        return _("Between 2 and {number} choices.").format(number=MOST_CHOICES)
    if any(len(choice) > MAX_CHARS for choice in choices):
        return _("A choice has at most {number} characters.").format(number=MAX_CHARS)
    return _("Two choices are the same.") if len(set(choices)) != len(choices) else ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
