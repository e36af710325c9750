"""The form of a policy: what `Policy` says, one pattern a line, a score in front of it where it has one. Whether it
makes sense, the service says."""

from __future__ import annotations

from typing import Any

from django import forms

from apps.safety.enums import Mode, Tolerance
from apps.safety.schemas import Policy

_LISTS = ("deny", "requires_approval", "auto_approve")


def _patterns(label: str, said: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 5, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=said, required=False, widget=area, max_length=100_000)


class PolicyForm(forms.Form):
    """`seen` is the number of the version that the writer looks at."""

    mode = forms.ChoiceField(label="Mode", choices=Mode.choices)
    tolerance = forms.ChoiceField(
        label="Risk tolerance", choices=Tolerance.choices, help_text="A conservative policy also pauses small risks."
    )
    max_steps = forms.IntegerField(
        label="Steps before a person has to look", min_value=0, max_value=10_000, help_text="0 is no limit."
    )
    step_window_seconds = forms.IntegerField(
        label="Counted over how many seconds",
        min_value=60,
        max_value=86_400,
        initial=3600,
        help_text="The limit is for each execution, and for all executions of a key together within this time.",
    )
    challenge_seconds = forms.IntegerField(label="How long a code is good, in seconds", min_value=30, max_value=3600)
    deny = _patterns("Stop the agent at once", "One pattern a line: * is anything, ? is one character.")
    requires_approval = _patterns("Ask a person first", "A pattern stands for the whole sentence: *git push*")
    auto_approve = _patterns("Always let pass", "These skip the judgement of risk.")
    scores = _patterns(
        "Scores of your own", "A score from 0 to 100, then its pattern: 70 *invoice*. The highest counts."
    )
    note = forms.CharField(label="Why", required=False, max_length=200)
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def clean_scores(self) -> list[dict[str, Any]]:
        return [self._scored(line.strip()) for line in self.cleaned_data["scores"].splitlines() if line.strip()]

    def _scored(self, line: str) -> dict[str, Any]:
        score, _, pattern = line.partition(" ")
        if not (score.isascii() and score.isdecimal() and int(score) <= 100 and pattern.strip()):
            raise forms.ValidationError(f"No score and pattern: {line[:80]}")
        return {"pattern": pattern.strip(), "score": int(score)}

    def content(self) -> dict[str, Any]:
        """As `write_policy` takes it."""
        given = dict(self.cleaned_data)
        for name in ("note", "seen"):
            given.pop(name)
        return given | {name: [line for line in given[name].splitlines() if line.strip()] for name in _LISTS}


def initial_of(policy: Policy, number: int) -> dict[str, Any]:
    """What the form begins with."""
    said = policy.stored()
    lists = {name: "\n".join(said[name]) for name in _LISTS}
    scores = "\n".join(f"{each.score} {each.pattern}" for each in policy.scores)
    return said | lists | {"scores": scores, "seen": number}
