"""The form in which a model, its provider's key and the address of its server are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tenants.provider_keys import LONGEST_KEY, PROVIDER_MESSAGES, server_address_problem, server_problem
from kernel.http.addresses import MAX_URL_LENGTH
from llm.credentials import join_credential
from llm.models import GROUNDED, is_known

PROVIDERS = (
    ("openai", "OpenAI"),
    ("anthropic", "Anthropic"),
    ("openrouter", "OpenRouter"),
    ("deepseek", "DeepSeek"),
    ("azure", "Azure OpenAI"),
    ("ollama", "Ollama"),
    ("compatible", gettext_lazy("Another server (chat completions)")),
    ("compatible-responses", gettext_lazy("Another server (responses)")),
)


class ModelForm(forms.Form):
    """`model_id` is the full name of the model; key and address may be empty if they are saved already.

    With `lists` in what was sent only the server's models are asked for; `offered` are their names.
    """

    offered: Sequence[str] = ()

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
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "list": "offered-models"}),
    )
    address = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=MAX_URL_LENGTH,
        required=False,
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": "https://llm.example.com/v1"}
        ),
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

    @property
    def lists(self) -> bool:
        """Whether only the models of the server are asked for."""
        return "lists" in self.data

    @property
    def credential(self) -> str | None:
        """What was typed, or None where nothing was."""
        key, address = self.cleaned_data["key"], self.cleaned_data["address"]
        return join_credential(key, address) if key or address else None

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if self.errors or cleaned["kind"] == "builtin":
            return cleaned
        if not cleaned["model"] and not self.lists:
            self.add_error("model", _("Enter a model name."))
        elif not cleaned["provider"] or not is_known(f"{cleaned['provider']}:{cleaned['model'] or 'any'}"):
            self.add_error("model", PROVIDER_MESSAGES["unknown_model"])
        elif cleaned["key"] or cleaned["address"]:
            self._check_server()
        return cleaned

    def _check_server(self) -> None:
        key, address = self.cleaned_data["key"], self.cleaned_data["address"]
        if problem := server_address_problem(self.model_id, address):
            self.add_error("address", problem)
        elif problem := server_problem(self.model_id, key=key, address=address):
            self.add_error("key", problem)
