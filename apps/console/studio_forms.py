"""Which settings of a deployment does an owner fill in? Shapes only: what is right, the rules of tenants decide."""

from __future__ import annotations

from typing import Any

from django import forms

from apps.tenants.hours import DAYS
from apps.tenants.models import Deployment
from apps.tenants.rules import LANGUAGES, MODEL_ROLES, OPTIONAL_ROLES, theme_problems
from apps.tenants.services import deployment_problems
from kernel.unicode_safety import replace_unstorable

_DAY_NAMES = dict(
    zip(DAYS, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"), strict=True)
)
_ROLE_NAMES = {
    "proxy": "Talks to visitors",
    "planner": "Plans what is to be done",
    "executor": "Carries out what was approved",
    "scorer": "Decides what leaves a full window",
}
_LOOKS = ("accent", "mode", "position", "font", "launcher", "placement")
GROUPS = (
    ("How it looks", ("title", "greeting", "suggestions", "accent", "mode", "font")),
    ("Where it stands on a page", ("placement", "position", "launcher")),
    ("Which languages it speaks", ("languages", "first_language")),
    ("How it sounds", ("persona",)),
    ("Where it may be shown", ("allowed_origins",)),
    ("What answers", tuple(f"model_{role}" for role in (*MODEL_ROLES, *OPTIONAL_ROLES))),
    ("When people answer", (*(f"hours_{day}" for day in DAYS), "timezone", "after_hours")),
)
FOLDED = ("Consent before the first word", "What answers", "When people answer")
# Where what is wrong with a setting is shown.
_SHOWN_AT = {"opening_hours": "hours_mon", "model_names": "model_proxy"}


def _area(label: str, help_text: str = "", *, rows: int = 3, most: int = 4000) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, required=False, max_length=most, widget=forms.Textarea(attrs={"rows": rows})
    )


class DeploymentForm(forms.Form):
    """`initial_of` fills it from a deployment; after `is_valid`, `said` is what `change_deployment` takes."""

    title = forms.CharField(label="Name", max_length=80, help_text="Stands at the top of the chat")
    greeting = _area("Greeting", rows=2, most=300)
    suggestions = _area("Suggestions", "What a visitor may press instead of typing, one a line")
    accent = forms.RegexField(
        r"^#[0-9a-fA-F]{6}$",
        label="Colour",
        required=False,
        widget=forms.TextInput(attrs={"type": "color"}),
        error_messages={"invalid": "A colour such as #1f5f8b."},
    )
    mode = forms.ChoiceField(
        label="Light or dark",
        choices=[("auto", "As the visitor's browser"), ("light", "Light"), ("dark", "Dark")],
        required=False,
    )
    font = forms.CharField(label="Font", max_length=200, required=False, help_text="Empty: the site's own")
    placement = forms.ChoiceField(
        label="Bubble or inline",
        choices=[("bubble", "A bubble in the corner"), ("inline", "In the page, where you put it")],
        required=False,
        help_text="A line that stands on your site already stays as it is: take the new one along",
    )
    position = forms.ChoiceField(label="Side", choices=[("right", "Right"), ("left", "Left")], required=False)
    launcher = forms.CharField(
        label="Text on the bubble",
        required=False,
        help_text="Up to 40 characters, such as: Ask us. Empty: the sign alone",
    )
    languages = forms.MultipleChoiceField(
        label="Its own words may be in",
        choices=list(LANGUAGES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None ticked: all. The page's language comes first, then what the visitor's browser prefers. What "
        "the bot answers in is not decided here",
    )
    first_language = forms.ChoiceField(
        label="Where a visitor prefers none of them",
        choices=[("", "The first that is ticked, else English"), *LANGUAGES.items()],
        required=False,
    )
    persona = _area("Persona", "How it sounds, in plain sentences. It is no policy: rules are gates.", rows=6)
    allowed_origins = _area(
        "Sites", "One a line, exactly as browsers say it: https://www.example.com", rows=4, most=8000
    )
    timezone = forms.CharField(label="Time zone", max_length=60, required=False, help_text="Empty: the company's")
    after_hours = forms.CharField(label="What a visitor reads outside of these hours", max_length=500, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.theme: dict[str, str] = dict(kwargs.pop("theme", {}))
        super().__init__(*args, **kwargs)
        for role in (*MODEL_ROLES, *OPTIONAL_ROLES):
            self.fields[f"model_{role}"] = forms.CharField(
                label=_ROLE_NAMES[role],
                max_length=120,
                required=role in MODEL_ROLES,
                widget=forms.TextInput(attrs={"list": "models", "spellcheck": "false", "autocomplete": "off"}),
            )
        for day, name in _DAY_NAMES.items():
            self.fields[f"hours_{day}"] = forms.CharField(
                label=name, required=False, max_length=80, widget=forms.TextInput(attrs={"placeholder": "closed"})
            )

    @property
    def said(self) -> dict[str, Any]:
        """What the theme had beside what is asked here stays as it was."""
        told = {name: _storable(value) for name, value in self.cleaned_data.items()}
        plain = ("title", "persona", "timezone", "after_hours")
        looks = {name: told.get(name, "") for name in _LOOKS}
        kept = {name: value for name, value in self.theme.items() if name not in _LOOKS}
        return {
            **{name: told.get(name, "") for name in plain},
            "greeting": " ".join(told.get("greeting", "").split()),
            "suggestions": _lines(told.get("suggestions", "")),
            "allowed_origins": _lines(told.get("allowed_origins", "")),
            "languages": _in_order(told.get("languages", []), told.get("first_language", "")),
            "theme": {**kept, **{name: value for name, value in looks.items() if value}},
            "model_names": {
                role: told[f"model_{role}"] for role in (*MODEL_ROLES, *OPTIONAL_ROLES) if told.get(f"model_{role}")
            },
            "opening_hours": {day: told[f"hours_{day}"] for day in DAYS if told.get(f"hours_{day}")},
        }

    def clean(self) -> dict[str, Any]:
        told = super().clean() or self.cleaned_data
        if not self.errors:
            problems = deployment_problems(self.said)
            if problems.pop("theme", ""):
                problems |= theme_problems(self.said["theme"])
            for name, problem in problems.items():
                self.add_error(_SHOWN_AT.get(name, name if name in self.fields else "accent"), problem)
        first, ticked = told.get("first_language"), told.get("languages")
        if first and ticked and first not in ticked:
            self.add_error("first_language", "Tick this language too, or choose one that is ticked.")
        return told


class NewDeploymentForm(forms.Form):
    title = forms.CharField(label="Name", max_length=80, help_text="Stands at the top of the chat")
    like: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label="Begin with the settings of", required=False, empty_label="Nothing"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["like"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Deployment.objects.order_by("title")


def initial_of(place: Deployment) -> dict[str, Any]:
    return {
        **{name: getattr(place, name) for name in ("title", "greeting", "persona", "timezone", "after_hours")},
        "suggestions": "\n".join(place.suggestions),
        "allowed_origins": "\n".join(place.allowed_origins),
        **{name: place.theme.get(name, "") for name in _LOOKS},
        "accent": place.theme.get("accent") or "#2c49d4",
        "mode": place.theme.get("mode") or "auto",
        "position": place.theme.get("position") or "right",
        "placement": place.theme.get("placement") or "bubble",
        "languages": place.languages,
        "first_language": place.languages[0] if place.languages else "",
        **{f"model_{role}": place.model_names.get(role, "") for role in (*MODEL_ROLES, *OPTIONAL_ROLES)},
        **{f"hours_{day}": place.opening_hours.get(day, "") for day in DAYS},
    }


def _storable(value: Any) -> Any:
    return replace_unstorable(value) if isinstance(value, str) else value


def _in_order(ticked: list[str], first: str) -> list[str]:
    """The one that is spoken by itself in front. First without any ticked: all of them, this one in front."""
    listed = ticked or (list(LANGUAGES) if first else [])
    return sorted(listed, key=lambda one: one != first)


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
