"""Form of a policy: one pattern for each line, with a score in front of it in the list of scores.

The service validates the content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from apps.safety.enums import Mode, Tolerance
from apps.safety.schemas import Policy
from kernel.language import gettext, gettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_LISTS = ("deny", "requires_approval", "auto_approve")


def _patterns(label: StrOrPromise, help_text: StrOrPromise) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 5, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=help_text, required=False, widget=area, max_length=100_000)


class PolicyForm(forms.Form):
    """`seen` is the number of the version that the form was filled from."""

    mode = forms.ChoiceField(label=gettext_lazy("Mode"), choices=Mode.choices)
    tolerance = forms.ChoiceField(
        label=gettext_lazy("Risk tolerance"),
        choices=Tolerance.choices,
        help_text=gettext_lazy("A conservative policy also pauses low-risk actions."),
    )
    max_steps = forms.IntegerField(
        label=gettext_lazy("Steps before a person must review"),
        min_value=0,
        max_value=10_000,
        help_text=gettext_lazy("0 means no limit."),
    )
    step_window_seconds = forms.IntegerField(
        label=gettext_lazy("Step window, in seconds"),
        min_value=60,
        max_value=86_400,
        initial=3600,
        help_text=gettext_lazy(
            "The limit applies to each execution, and to all executions of an API key together within this time."
        ),
    )
    challenge_seconds = forms.IntegerField(
        label=gettext_lazy("Code expires after, in seconds"), min_value=30, max_value=3600
    )
    deny = _patterns(
        gettext_lazy("Stop the agent"), gettext_lazy("One pattern per line. * matches anything, ? one character.")
    )
    requires_approval = _patterns(
        gettext_lazy("Require approval"),
        gettext_lazy("A pattern must match the whole sentence, for example *git push*"),
    )
    auto_approve = _patterns(gettext_lazy("Always allow"), gettext_lazy("These actions skip the risk score."))
    scores = _patterns(
        gettext_lazy("Your own scores"),
        gettext_lazy("A score from 0 to 100, then its pattern, for example 70 *invoice*. The highest applies."),
    )
    note = forms.CharField(label=gettext_lazy("Reason"), required=False, max_length=200)
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def clean_scores(self) -> list[dict[str, object]]:
        return [self._parse_score(line.strip()) for line in self.cleaned_data["scores"].splitlines() if line.strip()]

    def _parse_score(self, line: str) -> dict[str, object]:
        score, _, pattern = line.partition(" ")
        if not (score.isascii() and score.isdecimal() and int(score) <= 100 and pattern.strip()):
            raise forms.ValidationError(
                gettext("Enter a score from 0 to 100 and a pattern: {line}").format(line=line[:80])
            )
        return {"pattern": pattern.strip(), "score": int(score)}

    def content(self) -> dict[str, Any]:
        """Return the content for `write_policy`."""
        content = dict(self.cleaned_data)
        for name in ("note", "seen"):
            content.pop(name)
        return content | {name: [line for line in content[name].splitlines() if line.strip()] for name in _LISTS}


def initial_values(policy: Policy, number: int) -> dict[str, object]:
    """Initial values of the form."""
    stored = policy.stored()
    lists = {name: "\n".join(stored[name]) for name in _LISTS}
    scores = "\n".join(f"{rule.score} {rule.pattern}" for rule in policy.scores)
    return stored | lists | {"scores": scores, "seen": number}
