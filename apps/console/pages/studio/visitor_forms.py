"""The form of visitor features: files, consent, pre-chat questions, transcripts and ratings.

The rules of the features decide what is valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.forms import BoundField
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tenants.models import Deployment
from apps.visitors import offers
from apps.visitors.enums import QuestionKind, RatingScale
from apps.visitors.models import FormQuestion, VisitorOffers
from kernel.unicode_safety import replace_unstorable

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

GROUPS = (
    (gettext_lazy("Files from visitors"), (*offers.GROUPS, "file_megabytes", "files_each")),
    (gettext_lazy("Consent"), ("consent_text", "consent_link", "consent_version")),
    (gettext_lazy("In the chat's menu"), ("conversations", "transcripts", "rating")),
    (gettext_lazy("Messages"), ("read_receipts",)),
)
QUESTION_FIELDS = ("kind", "label", "required", "choices")
# Question rows that are shown at least; always one more than there are questions.
_ROWS_SHOWN = 2


def _checkbox(label: StrOrPromise, help_text: StrOrPromise = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, help_text=help_text, required=False)


def _files(group: str, label: StrOrPromise, help_text: StrOrPromise = "") -> forms.BooleanField:
    """A checkbox for a group of file types; the preview reads the file extensions from it."""
    field = _checkbox(label, help_text)
    field.widget.attrs["data-endings"] = " ".join(offers.ENDINGS[group])
    return field


def _area(label: StrOrPromise, help_text: StrOrPromise, *, rows: int, most: int) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=most, widget=widget)


class VisitorFeaturesForm(forms.Form):
    """`initial_of` fills the form; after `is_valid`, `features` and `question_values` are what `offers.change` and
    `offers.change_form` take."""

    pictures = _files("pictures", gettext_lazy("Pictures"), gettext_lazy("PNG, JPEG, WebP and GIF"))
    pdfs = _files("pdfs", gettext_lazy("PDF files"))
    texts = _files("texts", gettext_lazy("Text files"), gettext_lazy("TXT and CSV"))
    office = _files("office", gettext_lazy("Office files"), gettext_lazy("DOCX and XLSX without macros"))
    file_megabytes = forms.IntegerField(label=gettext_lazy("Maximum file size in MB"), min_value=1, max_value=25)
    files_each = forms.IntegerField(label=gettext_lazy("Maximum files per conversation"), min_value=1, max_value=100)
    consent_text = _area(
        gettext_lazy("Text"),
        gettext_lazy("What a visitor agrees to before anything is sent or stored"),
        rows=3,
        most=2000,
    )
    consent_link = forms.CharField(label=gettext_lazy("Link for more"), max_length=500, required=False)
    consent_version = forms.CharField(
        label=gettext_lazy("Version"),
        max_length=40,
        required=False,
        help_text=gettext_lazy("Such as 2026-03. Visitors are asked again for each new version"),
    )
    conversations = _checkbox(
        gettext_lazy("Several conversations"),
        gettext_lazy("Visitors can see their earlier conversations and start new ones"),
    )
    transcripts = _checkbox(
        gettext_lazy("Transcript by email"), gettext_lazy("Sent to the address that the visitor enters")
    )
    read_receipts = _checkbox(
        gettext_lazy("Read receipts"),
        gettext_lazy("Visitors see when the person who answers has read their messages"),
    )
    rating = forms.ChoiceField(
        label=gettext_lazy("Rating at the end"),
        choices=[("", gettext_lazy("None")), *RatingScale.choices],
        required=False,
    )

    def __init__(self, *args: Any, place: Deployment, **kwargs: Any) -> None:
        self.place = place
        super().__init__(*args, **kwargs)
        for number in range(offers.MOST_QUESTIONS):
            for name, field in _question_fields().items():
                self.fields[f"q{number}_{name}"] = field
        if not settings.EMAIL_HOST:
            self.fields["transcripts"].help_text = _("Needs a mail server, which this installation doesn't have yet")

    @property
    def features(self) -> dict[str, object]:
        values = {name: self.cleaned_data[name] for name in offers.FIELDS}
        return {name: replace_unstorable(value) if isinstance(value, str) else value for name, value in values.items()}

    @property
    def question_values(self) -> list[dict[str, object]]:
        return [question for _, question in self._questions()]

    @property
    def has_questions(self) -> bool:
        """True if any question row has a value."""
        return any(self[f"q{n}_{name}"].value() for n in range(offers.MOST_QUESTIONS) for name in QUESTION_FIELDS)

    def questions(self) -> list[tuple[int, list[BoundField], bool]]:
        """Return the question rows as (number, fields, whether it is shown at first)."""
        used = [
            n for n in range(offers.MOST_QUESTIONS) if any(self[f"q{n}_{name}"].value() for name in QUESTION_FIELDS)
        ]
        last = max(_ROWS_SHOWN, *(n + 2 for n in used), 0)
        rows = (([self[f"q{n}_{name}"] for name in QUESTION_FIELDS], n) for n in range(offers.MOST_QUESTIONS))
        return [(n + 1, fields, n < last) for fields, n in rows]

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if set(offers.FIELDS) <= set(self.cleaned_data):
            self._add(offers.problems_of(VisitorOffers(deployment=self.place, **self.features)), "")
        for number, question in self._questions():
            row = offers.question_of(self.place, number, question)
            self._add(offers.question_problems(row), f"q{number}_")
        return cleaned

    def _questions(self) -> list[tuple[int, dict[str, object]]]:
        questions = []
        for number in range(offers.MOST_QUESTIONS):
            question = {name: self.cleaned_data.get(f"q{number}_{name}", "") for name in QUESTION_FIELDS}
            if any(question.values()):
                lines = [replace_unstorable(line).strip() for line in question["choices"].splitlines()]
                choices = list(dict.fromkeys(filter(None, lines)))
                questions.append(
                    (number, {**question, "label": replace_unstorable(question["label"]), "choices": choices})
                )
        return questions

    def _add(self, problems: dict[str, str], prefix: str) -> None:
        for name, problem in problems.items():
            if f"{prefix}{name}" not in self.errors:
                self.add_error(f"{prefix}{name}", problem)


def _question_fields() -> dict[str, forms.Field]:
    kinds = [("", gettext_lazy("Not used")), *QuestionKind.choices]
    return {
        "kind": forms.ChoiceField(label=gettext_lazy("Type"), choices=kinds, required=False),
        "label": forms.CharField(label=gettext_lazy("Question"), max_length=120, required=False),
        "required": _checkbox(gettext_lazy("Required")),
        "choices": _area(gettext_lazy("Choices"), gettext_lazy("For a choice: one per line"), rows=2, most=1000),
    }


def initial_of(offered: VisitorOffers, questions: Iterable[FormQuestion]) -> dict[str, object]:
    question_values = {
        f"q{number}_{name}": value
        for number, row in enumerate(questions)
        for name, value in {**offers.asked_as(row), "choices": row.choices}.items()
    }
    return {**{name: getattr(offered, name) for name in offers.FIELDS}, **question_values}
