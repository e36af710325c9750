"""Which models can a company choose, and does its key work? The words for what a provider answered.

A key is tried with one tiny request before it is kept; it is sealed at once and never shown again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django import forms

from apps.tenants.provider_keys import LONGEST_KEY, key_problem
from kernel.llm.failures import ProviderFailed, ShapeBroken
from kernel.llm.model_check import SECONDS, check_model
from kernel.llm.models import GROUNDED, is_known, needs_key

PROVIDERS = (
    ("openai", "OpenAI"),
    ("anthropic", "Anthropic"),
    ("openrouter", "OpenRouter"),
    ("deepseek", "DeepSeek"),
)
_SAID = {
    "http_400": "The provider did not take the question: is the model's name right?",
    "http_401": "The provider does not know this key.",
    "http_402": "The provider says that the account has no credit left.",
    "http_403": "The provider does not let this key ask this model.",
    "http_404": "The provider has no model of this name.",
    "http_429": "The provider says that there were too many requests, or that no credit is left.",
    "request_timeout": f"The provider did not answer within {SECONDS:.0f} seconds.",
    "first_token_timeout": f"The provider did not answer within {SECONDS:.0f} seconds.",
    "connection_lost": "The provider could not be reached from here.",
    "no_provider_key": "Paste the provider's key.",
    "bad_provider_key": "This is not a key: it has characters that no key has.",
    "unknown_model": "There is no model of this name.",
}


class ModelForm(forms.Form):
    """`said` is the model's whole name; `key` may be empty where one is kept already."""

    kind = forms.ChoiceField(
        choices=[("builtin", "The built-in model"), ("provider", "A model of a provider")], initial="builtin"
    )
    provider = forms.ChoiceField(label="Provider", choices=PROVIDERS, required=False)
    model = forms.CharField(
        label="Model",
        max_length=120,
        required=False,
        help_text="As the provider calls it",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    key = forms.CharField(
        label="Key",
        max_length=LONGEST_KEY,
        required=False,
        strip=True,
        help_text="Tried at once, kept sealed, never shown again",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    @property
    def said(self) -> str:
        told = self.cleaned_data
        return GROUNDED if told["kind"] == "builtin" else f"{told['provider']}:{told['model']}"

    def clean(self) -> dict[str, Any]:
        told = super().clean() or self.cleaned_data
        if self.errors or told["kind"] == "builtin":
            return told
        if not told["model"]:
            self.add_error("model", "Name the model.")
        elif not told["provider"] or not is_known(f"{told['provider']}:{told['model']}"):
            self.add_error("model", _SAID["unknown_model"])
        if told["key"] and (problem := key_problem(told["key"])):
            self.add_error("key", problem)
        return told


def problem_with(model: str, key: str | None) -> str:
    """Ask the model something tiny; what was wrong, in words, or empty. Outside of any scope: it waits for a
    provider."""
    if model == GROUNDED:
        return ""
    if needs_key(model) and not key:
        return _SAID["no_provider_key"]
    try:
        asyncio.run(check_model(model, key=key))
    except ProviderFailed as failed:
        return _SAID.get(failed.reason, f"The provider could not answer ({failed.reason}).")
    except (ShapeBroken, RuntimeError, ValueError, TypeError, AttributeError, LookupError) as failed:
        return f"The provider's answer could not be read ({type(failed).__name__})."
    return ""
