"""A simulated visitor as a member of staff describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.simulations.enums import Player
from apps.simulations.model_visitor import model_for
from apps.tenants.models import Deployment
from kernel.unicode_safety import replace_unstorable

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def _lines(label: StrOrPromise, help_text: StrOrPromise = "", *, rows: int = 2) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": rows})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=4000, widget=area)


class VisitorForm(forms.Form):
    """Who the visitor is and how the conversation is judged; `as_scenario` is what `services.save_scenario` takes."""

    name = forms.CharField(label=gettext_lazy("Name of the scenario"), max_length=160)
    goal = _lines(gettext_lazy("What the visitor wants"))
    persona = _lines(gettext_lazy("Who the visitor is"), gettext_lazy("Character, mood, language, way of writing"))
    secrets = _lines(gettext_lazy("What only the visitor knows"), gettext_lazy("Told when the chatbot asks for it"))
    lines = _lines(
        gettext_lazy("What the visitor writes"),
        gettext_lazy("One message per line. Where a model plays the visitor, it writes its own messages."),
        rows=4,
    )
    says = _lines(gettext_lazy("An answer must contain"), gettext_lazy("One text per line"))
    never = _lines(gettext_lazy("No answer may contain"), gettext_lazy("One text per line"))

    def __init__(self, sent: Mapping[str, object] | None = None, *, chatbot: Deployment | None) -> None:
        super().__init__(sent, prefix="visitor")
        self.chatbot = chatbot

    def clean(self) -> dict[str, Any]:
        super().clean()
        sent = {name: replace_unstorable(text).strip() for name, text in self.cleaned_data.items()}
        by_model = bool(sent.get("goal")) and self.chatbot is not None and bool(model_for(self.chatbot))
        if not sent.get("lines") and not by_model:
            self.add_error("lines", _("This chatbot has no model that can play the visitor. Write their messages."))
        if not sent.get("says") and not sent.get("never"):
            self.add_error("says", _("Say what an answer must contain, or must not. The conversation is judged by it."))
        return sent

    def as_scenario(self) -> dict[str, object]:
        sent = self.cleaned_data
        words = {kind: _split(sent[kind]) for kind in ("says", "never")}
        return {
            "player": Player.MODEL if sent["goal"] else Player.SCRIPT,
            "persona": sent["persona"],
            "goal": sent["goal"],
            "secrets": sent["secrets"],
            "lines": [{"say": text} for text in _split(sent["lines"])],
            "checks": [{"kind": kind, "words": listed} for kind, listed in words.items() if listed],
        }


def _split(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
