"""The form of a chatbot's personality: a preset, or each axis by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django import forms
from django.utils.translation import gettext_lazy

from apps.persona import rules, services
from apps.persona.enums import Axis, Preset
from apps.persona.models import PersonaState
from apps.tenants.models import Deployment

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# What the ends of each slider mean.
_ENDS: dict[Axis, StrOrPromise] = {
    Axis.WARMTH: gettext_lazy("From factual to warm"),
    Axis.ASSERTIVENESS: gettext_lazy("From gentle suggestions to clear recommendations"),
    Axis.VERBOSITY: gettext_lazy("From short answers to full explanations"),
    Axis.FORMALITY: gettext_lazy("From casual to formal"),
    Axis.HUMOR: gettext_lazy("From serious to playful"),
    Axis.INITIATIVE: gettext_lazy("From answering only to suggesting next steps"),
    Axis.CERTAINTY: gettext_lazy("From cautious to confident"),
}
GROUPS: tuple[tuple[StrOrPromise, tuple[str, ...]], ...] = (
    (gettext_lazy("Personality"), ("preset", *(f"axis_{axis}" for axis in Axis))),
)


class PersonalityForm(forms.Form):
    """`save` applies it; fields that a request leaves out stay as they are."""

    preset = forms.ChoiceField(
        label=gettext_lazy("Style"),
        choices=Preset.choices,
        required=False,
        help_text=gettext_lazy(
            "Changes how answers sound, never what is allowed. Moving a slider makes the style custom. The built-in "
            "model has a style of its own."
        ),
    )

    def __init__(self, data: Mapping[str, object] | None = None, *, state: PersonaState | None) -> None:
        axes = rules.axes_of(state.baseline_axes if state else {})
        self.before = {axis: round(axes[axis] * 100) for axis in Axis}
        self.preset_before = Preset(state.active_preset) if state else Preset.OFF
        initial = {"preset": self.preset_before, **{f"axis_{axis}": self.before[axis] for axis in Axis}}
        super().__init__(data, initial=initial)
        for axis in Axis:
            self.fields[f"axis_{axis}"] = forms.IntegerField(
                label=axis.label,
                min_value=0,
                max_value=100,
                required=False,
                help_text=_ENDS[axis],
                widget=forms.NumberInput(attrs={"type": "range", "step": "5"}),
            )

    def axes(self) -> rules.Axes | None:
        """The seven axes as `save` would leave them; None where the personality would be off."""
        preset, moved = self._wanted()
        kept: rules.Axes = {axis.value: self.before[axis] / 100 for axis in Axis}
        if moved and preset in (self.preset_before, Preset.CUSTOM):
            return {**kept, **moved}
        if preset == Preset.OFF:
            return None
        return kept if preset in (self.preset_before, Preset.CUSTOM) else rules.preset_axes(preset)

    def _wanted(self) -> tuple[Preset, dict[str, float]]:
        """The preset, and the axes whose sliders were moved."""
        preset = Preset(self.cleaned_data.get("preset") or self.preset_before)
        given = {axis: self.cleaned_data.get(f"axis_{axis}") for axis in Axis}
        moved = {
            axis.value: value / 100 for axis, value in given.items() if value is not None and value != self.before[axis]
        }
        return preset, moved

    def save(self, deployment: Deployment, *, actor: str) -> None:
        """A newly chosen preset wins over sliders; moved sliders make the style custom."""
        preset, moved = self._wanted()
        if moved and preset in (self.preset_before, Preset.CUSTOM):
            services.set_axes(deployment, moved, actor=actor)
        elif preset != self.preset_before:
            services.choose_preset(deployment, preset, actor=actor)
