"""How does a member put a form together for the visitor? Eight rows, of which those with a label count. Shapes only:
what may be asked, `sessions.asking_forms` decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms

from apps.sessions.enums import FieldKind
from apps.sessions.prompt_forms import MOST_CHOICES, MOST_FIELDS
from kernel.unicode_safety import has_hidden_characters, replace_unstorable

SHOWN_AT_FIRST = 3
MOST_CHARS = 80
_NUMBERS = range(1, MOST_FIELDS + 1)
_HIDES = "This looks different from what it is: it holds characters that nobody sees."


@dataclass(frozen=True)
class Row:
    """One field as it stands before somebody: of the form that is written, and of its preview."""

    label: str
    kind: str
    required: bool
    choices: tuple[str, ...]

    @property
    def kind_label(self) -> str:
        return FieldKind(self.kind).label if self.kind in FieldKind.values else ""


def row_fields() -> dict[str, forms.Field]:
    """The fields of all rows, by name."""
    made: dict[str, forms.Field] = {}
    for number in _NUMBERS:
        made[f"label_{number}"] = forms.CharField(label=f"Field {number}", max_length=120, required=False)
        made[f"takes_{number}"] = forms.ChoiceField(
            label="Takes", choices=FieldKind.choices, required=False, initial=FieldKind.TEXT
        )
        made[f"choices_{number}"] = forms.CharField(
            label="Answers, with a semicolon between them",
            max_length=MOST_CHOICES * (MOST_CHARS + 2),
            required=False,
        )
        made[f"required_{number}"] = forms.BooleanField(label="Has to be filled in", required=False)
    return made


def row_names(number: int) -> tuple[str, ...]:
    return tuple(f"{part}_{number}" for part in ("label", "takes", "choices", "required"))


def rows_of(said: Any) -> list[tuple[int, Row]]:
    """Those with a label, with their numbers; `said` gives what was typed into a field, by its name."""
    rows = [
        (
            number,
            Row(
                label=said(f"label_{number}"),
                kind=said(f"takes_{number}") or FieldKind.TEXT,
                required=bool(said(f"required_{number}")),
                choices=tuple(each.strip() for each in said(f"choices_{number}").split(";") if each.strip()),
            ),
        )
        for number in _NUMBERS
    ]
    return [(number, row) for number, row in rows if row.label]


def problems(rows: list[tuple[int, Row]]) -> list[tuple[str, str]]:
    """At which field what is wrong."""
    if not rows:
        return [("label_1", "A form has one field at least.")]
    found, labels = [], set()
    for number, row in rows:
        if has_hidden_characters([row.label, *row.choices]):
            found.append((f"label_{number}", _HIDES))
        elif row.label in labels:
            found.append((f"label_{number}", "Two fields are called the same."))
        elif row.kind == FieldKind.CHOICE and (said := _choice_problem(row.choices)):
            found.append((f"choices_{number}", said))
        labels.add(row.label)
    return found


def wanted(rows: list[tuple[int, Row]]) -> list[dict[str, Any]]:
    """What `FormWanted` takes as its fields."""
    return [
        {
            "name": f"field_{number}",
            "label": replace_unstorable(row.label),
            "kind": row.kind,
            "required": row.required,
            "choices": [replace_unstorable(each) for each in row.choices] if row.kind == FieldKind.CHOICE else [],
        }
        for number, row in rows
    ]


def _choice_problem(choices: tuple[str, ...]) -> str:
    if not 2 <= len(choices) <= MOST_CHOICES:
        return f"Two answers at least, and {MOST_CHOICES} at most."
    if any(len(each) > MOST_CHARS for each in choices):
        return f"An answer has at most {MOST_CHARS} characters."
    return "Two answers read the same." if len(set(choices)) != len(choices) else ""
