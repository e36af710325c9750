"""The form in which a model and its provider's key are chosen."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tenants.provider_keys import LONGEST_KEY, PROVIDER_MESSAGES, key_problem
from llm.models import GROUNDED, is_known

PROVIDERS = (
    ("openai", "OpenAI"),
    ("anthropic", "Anthropic"),
    ("openrouter", "OpenRouter"),
    ("deepseek", "DeepSeek"),
)


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
            self.add_error("model", PROVIDER_MESSAGES["unknown_model"])
        if cleaned["key"] and (problem := key_problem(cleaned["key"])):
            self.add_error("key", problem)
        return cleaned
