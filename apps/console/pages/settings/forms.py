"""The forms of the company, of retention, of visitors' limits and of the time to decide. An empty number uses the
installation's setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.approvals.enums import Pace
from apps.approvals.models.cards import LONGEST, SHORTEST
from apps.console.templatetags.console import seconds as in_words
from apps.tenants.admin.fields import DurationInSecondsField
from apps.tenants.company_limits import shortened
from apps.tenants.models import Retention, VisitorLimits
from kernel.timezones import timezone_error, timezone_names

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_DAYS: dict[str, tuple[StrOrPromise, StrOrPromise]] = {
    "conversation_days": (
        gettext_lazy("Conversations, in days"),
        gettext_lazy(
            "Counted from the last message. Texts, files and names are deleted; times, cards and the audit log stay."
        ),
    ),
    "memory_days": (
        gettext_lazy("Memories, in days"),
        gettext_lazy("What chatbots remember of customers and conversations, pinned memories too."),
    ),
    "skill_days": (
        gettext_lazy("Drafts of skills, in days"),
        gettext_lazy("Unchanged drafts, and packages that are waiting for review."),
    ),
    "message_days": (
        gettext_lazy("Finished background jobs, in days"),
        gettext_lazy("Jobs that failed stay in Queues until someone retries or discards them."),
    ),
}
_LIMITS: dict[str, tuple[StrOrPromise, StrOrPromise]] = {
    "messages_a_minute": (gettext_lazy("Messages a minute in one conversation"), ""),
    "address_messages_a_minute": (
        gettext_lazy("Messages a minute from one internet address"),
        gettext_lazy("An office or a mobile network can have one address for many people."),
    ),
    "tenant_messages_a_minute": (gettext_lazy("Messages a minute from all visitors together"), ""),
    "sockets": (gettext_lazy("Windows in which one conversation can be open at once"), ""),
    "model_runs_a_minute": (
        gettext_lazy("Model runs a minute in one conversation"),
        gettext_lazy("Beyond it the built-in model answers."),
    ),
    "tenant_model_runs_a_minute": (
        gettext_lazy("Model runs a minute in all conversations together"),
        gettext_lazy("Beyond it the built-in model answers."),
    ),
    "pending_turns": (gettext_lazy("Messages of one conversation that can wait for an answer"), ""),
    "tenant_pending_turns": (gettext_lazy("Messages of all conversations that can wait for an answer"), ""),
}
_PACES: dict[Pace, tuple[StrOrPromise, StrOrPromise]] = {
    Pace.GATE: (
        gettext_lazy("Gate questions"),
        gettext_lazy("A visitor waits for the answer to a question of a gate."),
    ),
    Pace.PLAN: (
        gettext_lazy("Planned actions"),
        gettext_lazy("An action that a visitor or a colleague asked for."),
    ),
    Pace.CALM: (gettext_lazy("Everything else"), gettext_lazy("Suggestions, drafts and questions about skills.")),
}
_TOO_SHORT = gettext_lazy("The shortest time is 10 seconds.")
_TOO_LONG = gettext_lazy("The longest time is 30 days.")


class CompanyForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        help_text=gettext_lazy("Members see it in the console and in emails."),
    )
    timezone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=60,
        widget=forms.TextInput(attrs={"list": "timezones", "spellcheck": "false", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "Such as Europe/London. Days in Insights and Spending, and opening hours without a time zone of their own, "
            "use it."
        ),
    )

    @property
    def timezones(self) -> tuple[str, ...]:
        return timezone_names()

    def clean_timezone(self) -> str:
        zone = str(self.cleaned_data["timezone"])
        if problem := timezone_error(zone):
            raise forms.ValidationError(problem)
        return zone


class _NumbersForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """Number fields with their explanation and, as placeholder, what holds where they are empty."""

    names: Mapping[str, tuple[StrOrPromise, StrOrPromise]]

    def __init__(self, *args: Any, installation: Mapping[str, int | None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, about) in self.names.items():
            field = self.fields[name]
            field.label = label
            field.help_text = " ".join(filter(None, (str(about), self.default_of(installation[name]))))
            field.widget.attrs["placeholder"] = self.placeholder_of(installation[name])

    def default_of(self, value: int | None) -> str:
        raise NotImplementedError

    def placeholder_of(self, value: int | None) -> str:
        return "" if value is None else str(value)

    @property
    def values(self) -> dict[str, int | None]:
        return {name: self.cleaned_data[name] for name in self.names}


class RetentionForm(_NumbersForm):
    """Days after which data is deleted. What would be deleted earlier than now has to be confirmed."""

    names = _DAYS
    confirmed = forms.BooleanField(
        label=gettext_lazy("Delete what is older at the next clean-up. It can't be restored."), required=False
    )

    class Meta:
        model = Retention
        fields = tuple(_DAYS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.needs_confirmation = False

    def default_of(self, value: int | None) -> str:
        if value is None:
            return _("Leave empty to keep forever.")
        return ngettext("Empty: %(number)s day.", "Empty: %(number)s days.", value) % {"number": value}

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and shortened({name: cleaned[name] for name in self.names}):
            self.needs_confirmation = True
            if not cleaned["confirmed"]:
                self.add_error("confirmed", _("Confirm that older data is deleted."))
        return cleaned


class VisitorLimitsForm(_NumbersForm):
    names = _LIMITS

    class Meta:
        model = VisitorLimits
        fields = tuple(_LIMITS)

    def default_of(self, value: int | None) -> str:
        return _("Empty: %(number)s.") % {"number": value}


class CardTimingsForm(forms.Form):
    """How long cards wait, by what waits for their answer; `otherwise` are the seconds that hold where a field is
    empty."""

    def __init__(self, *args: Any, otherwise: Mapping[Pace, int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bounds = [MinValueValidator(SHORTEST, _TOO_SHORT), MaxValueValidator(LONGEST, _TOO_LONG)]
        for pace, (label, about) in _PACES.items():
            empty = _("Empty: %(time)s.") % {"time": in_words(otherwise[pace])}
            field = DurationInSecondsField(label=label, required=False, validators=bounds, help_text=f"{about} {empty}")
            field.widget.widgets[0].attrs["aria-label"] = label
            self.fields[pace.value] = field

    @property
    def values(self) -> dict[Pace, int | None]:
        return {pace: self.cleaned_data[pace.value] for pace in Pace}
