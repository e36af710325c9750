"""Try a model that was typed, list the models of its server, and say what the test cost. Outside of any scope, but for
the cost."""

from __future__ import annotations

from django.utils.translation import gettext as _

from apps.console.pages.studio.model_forms import ModelForm
from apps.console.templatetags.console import usd
from apps.guard.estimates import quote
from apps.tenants.provider_keys import ModelTest, models_of, try_model
from llm.keys import ProviderKeys
from llm.models import GROUNDED
from llm.pricing import price


def try_form(form: ModelForm, keys: ProviderKeys) -> ModelTest | None:
    """The test of the model in a valid form; None where there is none, and the form has its errors or the models that
    its server offers. What was not typed is taken from the stored `keys`."""
    if not form.is_valid():
        return None
    credential = form.credential or keys.of(form.model_id)
    if form.lists:
        form.offered, problem = models_of(form.cleaned_data["provider"], credential)
        if problem:
            form.add_error("model", problem)
        return None
    tested = try_model(form.model_id, credential)
    if tested.problem:
        form.add_error("key", tested.problem)
        return None
    return tested


def cost_of(model: str, tested: ModelTest) -> str:
    """What the test used and cost, and what to do where the price of the model is unknown."""
    if model == GROUNDED or tested.usage is None:
        return _("The model answered.")
    rates = quote(model, "proxy", tested.usage).rates
    tokens, cost = tested.usage.input_tokens + tested.usage.output_tokens, price(model, tested.usage, rates=rates)
    if cost is None:
        message = _(
            "The model answered with %(tokens)s tokens. Its price is unknown, so the built-in model answers until you "
            "set one for %(model)s under Settings, Model prices."
        )
        return message % {"tokens": tokens, "model": model}
    return _("The model answered. The test used %(tokens)s tokens and cost %(cost)s.") % {
        "tokens": tokens,
        "cost": usd(cost),
    }
