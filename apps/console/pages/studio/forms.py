"""The settings form of a chatbot. The rules of the tenants room decide what is valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.tenants.hours import DAYS
from apps.tenants.models import Deployment
from apps.tenants.rules import MODEL_ROLES, OPTIONAL_ROLES, theme_problems, typed_origins
from apps.tenants.services import deployment_problems
from apps.widgets.snippets import DEFAULT_ACCENT
from kernel.language import LANGUAGES
from kernel.unicode_safety import replace_unstorable

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_DAY_NAMES = dict(zip(DAYS, WEEKDAYS.values(), strict=True))
_ROLE_NAMES = {
    "proxy": gettext_lazy("Talks to visitors"),
    "planner": gettext_lazy("Plans work"),
    "executor": gettext_lazy("Carries out approved work"),
    "scorer": gettext_lazy("Shortens long conversations"),
}
_LOOKS = ("accent", "mode", "position", "font", "launcher", "placement", "home")
GROUPS = (
    (gettext_lazy("Appearance"), ("title", "greeting", "suggestions", "accent", "mode", "font")),
    (gettext_lazy("Placement"), ("placement", "position", "launcher", "home")),
    (gettext_lazy("Languages"), ("languages", "first_language")),
    (gettext_lazy("Tone of voice"), ("persona",)),
    (gettext_lazy("Allowed websites"), ("allowed_origins",)),
    (gettext_lazy("Models"), tuple(f"model_{role}" for role in (*MODEL_ROLES, *OPTIONAL_ROLES))),
    (gettext_lazy("Team hours"), (*(f"hours_{day}" for day in DAYS), "timezone", "after_hours")),
)
# The groups that can be collapsed, by their first field.
FOLDED = ("consent_text", "model_proxy", "hours_mon")
# Fields that show the problems of composed settings.
_ERROR_FIELDS = {"opening_hours": "hours_mon", "model_names": "model_proxy"}


def _area(label: StrOrPromise, help_text: StrOrPromise = "", *, rows: int = 3, most: int = 4000) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=help_text, required=False, max_length=most, widget=forms.Textarea(attrs={"rows": rows})
    )


class DeploymentForm(forms.Form):
    """`initial_of` fills the form; after `is_valid`, `values` is what `change_deployment` takes."""

    title = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, help_text=gettext_lazy("Shown at the top of the chat")
    )
    greeting = _area(gettext_lazy("Greeting"), rows=2, most=300)
    suggestions = _area(
        gettext_lazy("Suggestions"), gettext_lazy("Buttons that a visitor can use instead of typing, one per line")
    )
    accent = forms.RegexField(
        r"^#[0-9a-fA-F]{6}$",
        label=gettext_lazy("Colour"),
        required=False,
        widget=forms.TextInput(attrs={"type": "color"}),
        error_messages={"invalid": gettext_lazy("A colour such as #1f5f8b.")},
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("Light or dark"),
        choices=[
            ("auto", gettext_lazy("Same as the browser")),
            ("light", pgettext_lazy("colours", "Light")),
            ("dark", pgettext_lazy("colours", "Dark")),
        ],
        required=False,
    )
    font = forms.CharField(
        label=gettext_lazy("Font"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Leave empty to use the website's font"),
    )
    placement = forms.ChoiceField(
        label=gettext_lazy("Bubble or inline"),
        choices=[("bubble", gettext_lazy("A bubble in the corner")), ("inline", gettext_lazy("Inside the page"))],
        required=False,
        help_text=gettext_lazy("If you change this, also replace the code on your website"),
    )
    position = forms.ChoiceField(
        label=gettext_lazy("Side"),
        choices=[("right", pgettext_lazy("side", "Right")), ("left", pgettext_lazy("side", "Left"))],
        required=False,
    )
    launcher = forms.CharField(
        label=gettext_lazy("Text on the bubble"),
        required=False,
        help_text=gettext_lazy("Up to 40 characters, such as: Ask us. Leave empty for the icon only"),
    )
    home = forms.ChoiceField(
        label=gettext_lazy("Home screen"),
        choices=[("on", gettext_lazy("When there are articles or past conversations")), ("off", gettext_lazy("Off"))],
        required=False,
        help_text=gettext_lazy(
            "Opens the chat on the greeting, a search in the help articles that anyone may read, and earlier "
            "conversations where the chatbot offers several"
        ),
    )
    languages = forms.MultipleChoiceField(
        label=gettext_lazy("Widget languages"),
        choices=list(LANGUAGES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "Select none for all languages. The page's language comes first, then the browser's. This does not "
            "affect the language of the bot's answers"
        ),
    )
    first_language = forms.ChoiceField(
        label=gettext_lazy("Default language"),
        choices=[("", gettext_lazy("First selected language, or English")), *LANGUAGES.items()],
        required=False,
    )
    persona = _area(
        gettext_lazy("Persona"), gettext_lazy("Describe the tone in plain sentences. For rules, use gates."), rows=6
    )
    allowed_origins = _area(
        gettext_lazy("Websites"),
        gettext_lazy("One per line, such as www.example.com or localhost:3000"),
        rows=4,
        most=8000,
    )
    timezone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=60,
        required=False,
        help_text=gettext_lazy("Leave empty to use the company's"),
    )
    after_hours = forms.CharField(label=gettext_lazy("Message outside these hours"), max_length=500, required=False)

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
                label=name, required=False, max_length=80, widget=forms.TextInput(attrs={"placeholder": _("closed")})
            )

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of `change_deployment`. Theme values that this form does not ask for are kept."""
        cleaned = {
            name: replace_unstorable(value) if isinstance(value, str) else value
            for name, value in self.cleaned_data.items()
        }
        plain = ("title", "persona", "timezone", "after_hours")
        looks = {name: cleaned.get(name, "") for name in _LOOKS}
        kept = {name: value for name, value in self.theme.items() if name not in _LOOKS}
        return {
            **{name: cleaned.get(name, "") for name in plain},
            "greeting": " ".join(cleaned.get("greeting", "").split()),
            "suggestions": _lines(cleaned.get("suggestions", "")),
            "allowed_origins": typed_origins(cleaned.get("allowed_origins", "")),
            "languages": _in_order(list(cleaned.get("languages", [])), cleaned.get("first_language", "")),
            "theme": {**kept, **{name: value for name, value in looks.items() if value}},
            "model_names": {
                role: cleaned[f"model_{role}"]
                for role in (*MODEL_ROLES, *OPTIONAL_ROLES)
                if cleaned.get(f"model_{role}")
            },
            "opening_hours": {day: cleaned[f"hours_{day}"] for day in DAYS if cleaned.get(f"hours_{day}")},
        }

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            problems = deployment_problems(self.values)
            if problems.pop("theme", ""):
                problems |= theme_problems(self.values["theme"])
            for name, problem in problems.items():
                self.add_error(_ERROR_FIELDS.get(name, name if name in self.fields else "accent"), problem)
        first, ticked = cleaned.get("first_language"), cleaned.get("languages")
        if first and ticked and first not in ticked:
            self.add_error("first_language", _("Select this language above, or choose a selected one."))
        return cleaned


class NewDeploymentForm(forms.Form):
    title = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, help_text=gettext_lazy("Shown at the top of the chat")
    )
    like: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("Copy settings from"), required=False, empty_label=gettext_lazy("None")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["like"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Deployment.objects.order_by("title")


def initial_of(place: Deployment) -> dict[str, object]:
    return {
        **{name: getattr(place, name) for name in ("title", "greeting", "persona", "timezone", "after_hours")},
        "suggestions": "\n".join(place.suggestions),
        "allowed_origins": "\n".join(place.allowed_origins),
        **{name: place.theme.get(name, "") for name in _LOOKS},
        "accent": place.theme.get("accent") or DEFAULT_ACCENT,
        "mode": place.theme.get("mode") or "auto",
        "position": place.theme.get("position") or "right",
        "placement": place.theme.get("placement") or "bubble",
        "home": place.theme.get("home") or "on",
        "languages": place.languages,
        "first_language": place.languages[0] if place.languages else "",
        **{f"model_{role}": place.model_names.get(role, "") for role in (*MODEL_ROLES, *OPTIONAL_ROLES)},
        **{f"hours_{day}": place.opening_hours.get(day, "") for day in DAYS},
    }


def _in_order(ticked: list[str], first: str) -> list[str]:
    """Return the languages with the default one first; a default without a selection means all languages."""
    listed = ticked or (list(LANGUAGES) if first else [])
    return sorted(listed, key=lambda language: language != first)


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
