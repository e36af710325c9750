"""Choosing a model provider, testing its key, and the messages for what a provider answered.

A key is tested with one small request before it is saved; it is stored encrypted and never shown again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django import forms

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
_MESSAGES = {
    "http_400": "The provider rejected the request. Check the model name.",
    "http_401": "The provider rejected this key.",
    "http_402": "The provider account has no credit left.",
    "http_403": "This key has no access to this model.",
    "http_404": "The provider did not find this model or address. Check the model name.",
    "http_429": "The provider reports too many requests or no credit left.",
    "request_timeout": f"The provider did not answer within {SECONDS:.0f} seconds.",
    "first_token_timeout": f"The provider did not answer within {SECONDS:.0f} seconds.",
    "connection_lost": "The provider could not be reached.",
    "no_provider_key": "Paste the provider's key.",
    "bad_provider_key": "This is not a valid key: it contains characters that no key has.",
    "unknown_model": "Unknown model name.",
}


class ModelForm(forms.Form):
    """`model_id` is the full name of the model; `key` may be empty if one is saved already."""

    kind = forms.ChoiceField(
        choices=[("builtin", "The built-in model"), ("provider", "A provider's model")], initial="builtin"
    )
    provider = forms.ChoiceField(label="Provider", choices=PROVIDERS, required=False)
    model = forms.CharField(
        label="Model",
        max_length=120,
        required=False,
        help_text="The provider's name for it",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    key = forms.CharField(
        label="API key",
        max_length=LONGEST_KEY,
        required=False,
        strip=True,
        help_text="Tested right away, stored encrypted, never shown again",
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
            self.add_error("model", "Enter a model name.")
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
        return _MESSAGES["no_provider_key"]
    try:
        asyncio.run(check_model(model, key=key))
    except ProviderFailed as failed:
        return _MESSAGES.get(failed.reason, f"The provider could not answer ({failed.reason}).")
    except (ShapeBroken, RuntimeError, ValueError, TypeError, AttributeError, LookupError) as failed:
        return f"The provider's answer could not be read ({type(failed).__name__})."
    return ""
