"""Choosing a model provider, testing its key, and the messages for what a provider answered.

A key is tested with one small request before it is saved; it is stored encrypted and never shown again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tenants.provider_keys import LONGEST_KEY, key_problem
from llm.failures import ProviderFailed, ShapeBroken
from llm.model_check import SECONDS, check_model
from llm.models import GROUNDED, is_known, needs_key

PROVIDERS = (
    ("openai", "OpenAI"),
    ("anthropic", "Anthropic"),
    ("openrouter", "OpenRouter"),
    ("deepseek", "DeepSeek"),
)
_NO_ANSWER = format_lazy(
    gettext_lazy("The provider did not answer within {seconds} seconds."), seconds=f"{SECONDS:.0f}"
)
_MESSAGES = {
    "http_400": gettext_lazy("The provider rejected the request. Check the model name."),
    "http_401": gettext_lazy("The provider rejected this key."),
    "http_402": gettext_lazy("The provider account has no credit left."),
    "http_403": gettext_lazy("This key has no access to this model."),
    "http_404": gettext_lazy("The provider did not find this model or address. Check the model name."),
    "http_429": gettext_lazy("The provider reports too many requests or no credit left."),
    "request_timeout": _NO_ANSWER,
    "first_token_timeout": _NO_ANSWER,
    "connection_lost": gettext_lazy("The provider could not be reached."),
    "no_provider_key": gettext_lazy("Paste the provider's key."),
    "bad_provider_key": gettext_lazy("This is not a valid key: it contains characters that no key has."),
    "unknown_model": gettext_lazy("Unknown model name."),
}


class ModelForm(forms.Form):
    """`model_id` is the full name of the model; `key` may be empty if one is saved already."""

    kind = forms.ChoiceField(
        choices=[("builtin", gettext_lazy("The built-in model")), ("provider", gettext_lazy("A provider's model"))],
        initial="builtin",
    )
    provider = forms.ChoiceField(label=gettext_lazy("Provider"), choices=PROVIDERS, required=False)
    model = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=120,
        required=False,
        help_text=gettext_lazy("The provider's name for it"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    key = forms.CharField(
        label=gettext_lazy("API key"),
        max_length=LONGEST_KEY,
        required=False,
        strip=True,
        help_text=gettext_lazy("Tested right away, stored encrypted, never shown again"),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    @property
    def model_id(self) -> str:
        cleaned = self.cleaned_data
        return GROUNDED if cleaned["kind"] == "builtin" else f"{cleaned['provider']}:{cleaned['model']}"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors or cleaned["kind"] == "builtin":
            return cleaned
        if not cleaned["model"]:
            self.add_error("model", _("Enter a model name."))
        elif not cleaned["provider"] or not is_known(f"{cleaned['provider']}:{cleaned['model']}"):
            self.add_error("model", _MESSAGES["unknown_model"])
        if cleaned["key"] and (problem := key_problem(cleaned["key"])):
            self.add_error("key", problem)
        return cleaned


def problem_with(model: str, key: str | None) -> str:
    """Send the model a small request and return what is wrong, or an empty string. Call it outside of any scope."""
    if model == GROUNDED:
        return ""
    if needs_key(model) and not key:
        return str(_MESSAGES["no_provider_key"])
    try:
        asyncio.run(check_model(model, key=key))
    except ProviderFailed as failed:
        return str(
            _MESSAGES.get(failed.reason) or _("The provider could not answer (%(reason)s).") % {"reason": failed.reason}
        )
    except (ShapeBroken, RuntimeError, ValueError, TypeError, AttributeError, LookupError) as failed:
        return _("The provider's answer could not be read (%(reason)s).") % {"reason": type(failed).__name__}
    return ""
