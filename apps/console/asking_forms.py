"""What does a member fill in to ask the visitor, and what would the visitor see of it? Shapes only: what may be asked,
`sessions.asking` decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from pydantic import ValidationError as Unfit

from apps.console.asking_rows import Row, problems, row_fields, rows_of, wanted
from apps.sessions.prompt_forms import FormWanted
from apps.sessions.prompts import Asked, Question, SecretWanted
from kernel.unicode_safety import has_hidden_characters, replace_unstorable

MOST_ANSWERS, MOST_CHARS = 8, 80
WAITS = ((3600, "an hour"), (86_400, "a day"), (3 * 86_400, "three days"), (7 * 86_400, "a week"))
KINDS = (("choice", "A choice"), ("yes", "A yes or no"), ("form", "A form"), ("secret", "Something secret"))
PRESSES = (("low", "One press"), ("medium", "A press, and one more to confirm"), ("high", "A slide, and then a press"))
# Which fields belong to which kind; the others belong to all.
OWN = {
    "choice": ("question", "rationale", "answers", "own_words", "risk"),
    "yes": ("question", "rationale", "yes", "no", "risk"),
    "form": ("question", "rationale"),
    "secret": ("label", "instructions", "hint"),
}
_NEEDED = {
    "form": ("question",),
    "choice": ("question", "answers"),
    "yes": ("question", "yes", "no"),
    "secret": ("label", "instructions"),
}
_HIDES = "This looks different from what it is: it holds characters that nobody sees."


@dataclass(frozen=True)
class Preview:
    """The card as the visitor would see it. `press`: how an answer is given, where it takes more than one press."""

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
        """The answer that leaves things as they are."""
        return self.answers[-1] if self.answers else ""


class AskForm(forms.Form):
    """After `is_valid`, `asked` is what `ask_visitor` takes."""

    kind = forms.ChoiceField(label="What is asked for", choices=KINDS, widget=forms.RadioSelect, initial="choice")
    question = forms.CharField(label="Question", max_length=500, required=False)
    rationale = forms.CharField(label="Why you ask (optional)", max_length=500, required=False)
    answers = forms.CharField(
        label="Answers to press",
        help_text=f"One a line, {MOST_ANSWERS} at most. The last of several is the one that leaves things as they are.",
        max_length=MOST_ANSWERS * (MOST_CHARS + 2),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    yes = forms.CharField(label="To agree, they press", max_length=MOST_CHARS, required=False, initial="Yes")
    no = forms.CharField(label="To refuse, they press", max_length=MOST_CHARS, required=False, initial="No")
    own_words = forms.BooleanField(label="They may answer in their own words, too", required=False)
    risk = forms.ChoiceField(label="How it is pressed", choices=PRESSES, required=False, initial="low")
    label = forms.CharField(label="What is needed", max_length=120, required=False)
    instructions = forms.CharField(label="Where they find it, or why it is needed", max_length=1000, required=False)
    hint = forms.CharField(label="An example of how it looks (optional)", max_length=80, required=False)
    seconds = forms.TypedChoiceField(
        label="It waits for", choices=[(str(value), words) for value, words in WAITS], coerce=int, initial="86400"
    )

    asked: Asked

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.update(row_fields())

    @property
    def preview(self) -> Preview:
        """Of what was typed so far, right or not."""
        kind = self.typed("kind")
        waits = {str(value): words for value, words in WAITS}.get(self.typed("seconds"), "a day")
        if kind == "secret":
            hint = self.typed("hint") or "What they give"
            return Preview(self.typed("label"), self.typed("instructions"), field=hint, waits=waits)
        if kind == "form":
            rows = tuple(row for _, row in rows_of(self.typed))
            return Preview(self.typed("question"), self.typed("rationale"), rows=rows, waits=waits)
        answers = tuple(_lines(self.typed("answers"))) if kind == "choice" else (self.typed("yes"), self.typed("no"))
        risk = self.typed("risk")
        return Preview(
            self.typed("question"),
            self.typed("rationale"),
            answers[:MOST_ANSWERS],
            own_words=kind == "choice" and bool(self.typed("own_words")),
            press="" if risk in ("", "low") else dict(PRESSES).get(risk, ""),
            waits=waits,
        )

    def clean(self) -> dict[str, Any]:
        told = super().clean() or self.cleaned_data
        kind = told.get("kind", "")
        for name in OWN.get(kind, ()):
            value = told.get(name)
            if not value and name in _NEEDED[kind]:
                self.add_error(name, "This is needed.")
            elif isinstance(value, str) and has_hidden_characters([value]):
                self.add_error(name, _HIDES)
        if kind == "choice" and "answers" not in self.errors:
            self._check_answers(told["answers"])
        if kind == "form":
            for name, said in problems(rows_of(self.typed)):
                self.add_error(name, said)
        if not self.errors:
            self._make(kind)
        return told

    def _check_answers(self, text: str) -> None:
        lines = _lines(text)
        if len(lines) > MOST_ANSWERS:
            self.add_error("answers", f"At most {MOST_ANSWERS} answers.")
        elif any(len(line) > MOST_CHARS for line in lines):
            self.add_error("answers", f"An answer has at most {MOST_CHARS} characters.")
        elif len({line.casefold() for line in lines}) != len(lines):
            self.add_error("answers", "Two answers read the same.")

    def _make(self, kind: str) -> None:
        try:
            self.asked = self._form() if kind == "form" else _asked(kind, self.cleaned_data)
        except Unfit:
            self.add_error(None, "This cannot be asked like that.")

    def _form(self) -> FormWanted:
        told = self.cleaned_data
        return FormWanted.model_validate(
            {
                "question": replace_unstorable(told["question"]),
                "rationale": replace_unstorable(told["rationale"]),
                "fields": wanted(rows_of(self.typed)),
                "seconds": told["seconds"],
            }
        )

    def typed(self, name: str) -> str:
        """What stands in a field so far, right or not."""
        if self.is_bound:
            return replace_unstorable(str(self.data.get(self.add_prefix(name), "")).strip())
        return str(self.get_initial_for_field(self.fields[name], name) or "")


def _asked(kind: str, told: dict[str, Any]) -> Asked:
    return _wanted(told) if kind == "secret" else _question(told)


def _question(told: dict[str, Any]) -> Question:
    is_choice = told["kind"] == "choice"
    lines = _lines(told["answers"]) if is_choice else [told["yes"], told["no"]]
    values = [f"answer_{number}" for number in range(1, len(lines) + 1)] if is_choice else ["yes", "no"]
    return Question.model_validate(
        {
            "question": replace_unstorable(told["question"]),
            "rationale": replace_unstorable(told["rationale"]),
            "options": [
                {"value": value, "label": replace_unstorable(line)} for value, line in zip(values, lines, strict=True)
            ],
            "allow_freetext": is_choice and told["own_words"],
            "risk_level": told["risk"] or "low",
            "seconds": told["seconds"],
        }
    )


def _wanted(told: dict[str, Any]) -> SecretWanted:
    return SecretWanted.model_validate(
        {
            "label": replace_unstorable(told["label"]),
            "input_hint": replace_unstorable(told["hint"]),
            "guidance": {"instructions": replace_unstorable(told["instructions"])},
            "seconds": told["seconds"],
        }
    )


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
