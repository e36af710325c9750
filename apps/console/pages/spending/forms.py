"""The forms with which owners set a limit on spending, what happens at it, and the price of a model."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.guard import rules
from apps.guard.enums import Holder, OnLimit, Period
from apps.guard.models import ModelPrice
from apps.tenants.models import Deployment
from llm.pricing import RATE_FIELDS, Rates

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_COMPANY = "company"


class LimitForm(forms.Form):
    """What the company or one chatbot may spend a day or a month; `values` is what `set_budget` takes."""

    whose = forms.ChoiceField(label=_("Applies to"))
    period = forms.ChoiceField(label=_("Per"), choices=[(Period.DAY, _("Day")), (Period.MONTH, _("Month"))])
    limit_usd = forms.DecimalField(
        label=_("Limit in US dollars"), min_value=Decimal(0), max_value=rules.MAX_USD, decimal_places=rules.DIGITS
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chatbots = [(str(pk), title) for pk, title in Deployment.objects.order_by("title").values_list("pk", "title")]
        self.fields["whose"] = forms.ChoiceField(
            label=_("Applies to"), choices=[(_COMPANY, _("The company")), *chatbots]
        )

    @property
    def values(self) -> dict[str, Any]:
        whose = self.cleaned_data["whose"]
        holder = {} if whose == _COMPANY else {"holder": Holder.DEPLOYMENT, "ref": UUID(whose)}
        return {"period": Period(self.cleaned_data["period"]), "limit_usd": self.cleaned_data["limit_usd"], **holder}


def _rate(label: StrOrPromise, **options: Any) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        min_value=Decimal(0),
        max_digits=18,
        decimal_places=rules.DIGITS,
        widget=forms.NumberInput(attrs={"step": "any"}),
        **options,
    )


class PriceForm(forms.Form):
    """What a million tokens of a model cost; `rates` is what `set_price` takes."""

    model = forms.CharField(
        label=_("Model"),
        max_length=120,
        validators=ModelPrice._meta.get_field("model").validators,
        error_messages={"invalid": _("Enter provider:model. Models of builtin: and ollama: cost nothing.")},
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        help_text=_("With its provider, such as openai:gpt-5-mini"),
    )
    input_per_million = _rate(_("Input, in US dollars per million tokens"))
    output_per_million = _rate(_("Output, in US dollars per million tokens"))
    cache_read_per_million = _rate(
        _("Read from the provider's cache"),
        required=False,
        help_text=_("Leave empty to use the input price"),
    )
    cache_write_per_million = _rate(
        _("Written to the provider's cache"),
        required=False,
        help_text=_("Leave empty to use the input price"),
    )

    @property
    def rates(self) -> Rates:
        return Rates(**{name: self.cleaned_data[name] for name in RATE_FIELDS})


class PolicyForm(forms.Form):
    """What `change_spending_policy` takes."""

    on_limit = forms.ChoiceField(
        label=_("When a limit is reached"),
        choices=OnLimit.choices,
        help_text=_("For the limits of the company and of chatbots. The limit of a visitor always applies."),
    )
    visitor_daily_usd = _rate(
        _("Daily limit per visitor, in US dollars"),
        required=False,
        help_text=_("Beyond it the built-in model answers. Empty: no limit."),
    )
    default_input = _rate(
        _("Input, in US dollars per million tokens"),
        required=False,
        help_text=_("Both prices empty: a model without a known price is not used."),
    )
    default_output = _rate(_("Output, in US dollars per million tokens"), required=False)

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or self.cleaned_data
        if not self.errors and (cleaned["default_input"] is None) is not (cleaned["default_output"] is None):
            missing = "default_input" if cleaned["default_input"] is None else "default_output"
            self.add_error(missing, _("Enter both prices, or neither."))
        return cleaned


def price_in_fields(price: ModelPrice) -> dict[str, object]:
    """The initial values of the form."""
    return amounts_in_fields({"model": price.model, **{name: getattr(price, name) for name in RATE_FIELDS}})


def amounts_in_fields(values: Mapping[str, Any]) -> dict[str, object]:
    """The values with their amounts as people write them, without the zeros that the columns keep."""
    return {
        name: f"{value.normalize():f}" if isinstance(value, Decimal) else value
        for name, value in values.items()
        if value is not None
    }
