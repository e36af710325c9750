"""The forms with which owners set a limit on spending and the price of a model."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.guard import rules
from apps.guard.enums import Holder, Period
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
        help_text=_("Leave empty if it costs what other input does"),
    )
    cache_write_per_million = _rate(
        _("Written to the provider's cache"),
        required=False,
        help_text=_("Leave empty if it costs what other input does"),
    )

    @property
    def rates(self) -> Rates:
        return Rates(**{name: self.cleaned_data[name] for name in RATE_FIELDS})


def price_in_fields(price: ModelPrice) -> dict[str, str]:
    """The initial values of the form, without the zeros that the column keeps."""
    amounts = {name: amount for name in RATE_FIELDS if (amount := getattr(price, name)) is not None}
    return {"model": price.model, **{name: f"{amount.normalize():f}" for name, amount in amounts.items()}}
