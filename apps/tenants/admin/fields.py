"""Form fields for values that people type otherwise than they are stored: lists and maps of words, and durations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext, gettext_lazy

from apps.tenants.rules import typed_origins

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class LinesField(forms.CharField):
    """A list of words, one a line."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=forms.Textarea(attrs={"rows": 4, "cols": 60}), **kwargs)

    def prepare_value(self, value: object) -> object:
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def to_python(self, value: object) -> Any:
        if isinstance(value, list):
            return value
        return list(dict.fromkeys(line.strip() for line in str(value or "").splitlines() if line.strip()))

    def has_changed(self, initial: object, data: object) -> bool:
        return bool(self.to_python(initial) != self.to_python(data))


class OriginsField(LinesField):
    """A list of websites as people type them, one a line."""

    def to_python(self, value: object) -> Any:
        return value if isinstance(value, list) else typed_origins(str(value or ""))


class _PartsWidget(forms.MultiWidget):
    """One text field for each part, under its own label."""

    template_name = "tenants/parts_widget.html"

    def __init__(self, parts: Mapping[str, StrOrPromise]) -> None:
        super().__init__({name: forms.TextInput() for name in parts})
        self.parts = parts

    def decompress(self, value: object) -> list[object]:
        return [value.get(name, "") if isinstance(value, dict) else "" for name in self.parts]

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, object]:
        context = super().get_context(name, value, attrs)
        for part, label in zip(context["widget"]["subwidgets"], self.parts.values(), strict=True):
            part["label"] = label
        return context


class PartsField(forms.MultiValueField):
    """A map of words with these names, each under its label; names that are left empty are left out."""

    def __init__(self, parts: Mapping[str, StrOrPromise], **kwargs: Any) -> None:
        fields = [forms.CharField(required=False, max_length=500) for _ in parts]
        super().__init__(fields, required=False, require_all_fields=False, widget=_PartsWidget(parts), **kwargs)
        self.parts = parts

    def compress(self, data_list: Any) -> dict[str, str]:
        return {name: value for name, value in zip(self.parts, data_list or (), strict=False) if value}


_UNITS = (
    (86_400, gettext_lazy("days")),
    (3_600, gettext_lazy("hours")),
    (60, gettext_lazy("minutes")),
    (1, gettext_lazy("seconds")),
)


class _DurationWidget(forms.MultiWidget):
    """A number and its unit."""

    def __init__(self) -> None:
        units = forms.Select(attrs={"aria-label": gettext_lazy("Unit")}, choices=_UNITS)
        super().__init__([forms.NumberInput(attrs={"min": "1"}), units])

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0" if id_ else id_

    def decompress(self, value: object) -> list[object]:
        if not isinstance(value, int):
            return [None, 60]
        unit = next(unit for unit, _ in _UNITS if value % unit == 0)
        return [value // unit, unit]


class DurationInSecondsField(forms.MultiValueField):
    """A duration that is stored in seconds and typed as a number of days, hours, minutes or seconds."""

    def __init__(self, **kwargs: Any) -> None:
        fields = (
            forms.IntegerField(min_value=1, max_value=2**31 - 1),
            forms.TypedChoiceField(choices=_UNITS, coerce=int),
        )
        super().__init__(fields, widget=_DurationWidget(), **kwargs)

    def compress(self, data_list: Any) -> int | None:
        number, unit = data_list or (None, None)
        if number is not None and not unit:
            raise forms.ValidationError(gettext("Choose a unit."))
        return None if number is None else number * unit
