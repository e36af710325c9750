"""What does an owner fill in of what visitors are offered beside talking? Shapes only: what is right, the rules of the
offers decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.forms import BoundField

from apps.sessions.enums import QuestionKind, RatingScale
from apps.sessions.models import FormQuestion, VisitorOffers
from apps.sessions.visitors import offers
from apps.tenants.models import Deployment
from kernel.unicode_safety import replace_unstorable

GROUPS = (
    ("Files from visitors", (*offers.GROUPS, "file_megabytes", "files_each")),
    ("Consent before the first word", ("consent_text", "consent_link", "consent_version")),
    ("In the chat's menu", ("conversations", "transcripts", "rating")),
)
ASKED = ("kind", "label", "required", "choices")
# So many places for questions stand open, and one more than there are questions.
_OPEN_PLACES = 2


def _tick(label: str, help_text: str = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, help_text=help_text, required=False)


def _files(group: str, label: str, help_text: str = "") -> forms.BooleanField:
    """The preview takes the endings from the field."""
    field = _tick(label, help_text)
    field.widget.attrs["data-endings"] = " ".join(offers.ENDINGS[group])
    return field


def _area(label: str, help_text: str, *, rows: int, most: int) -> forms.CharField:
    widget = forms.Textarea(attrs={"rows": rows})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=most, widget=widget)


class BesideForm(forms.Form):
    """`initial_of` fills it from what is offered; after `is_valid`, `offered` and `asked` are what `offers.change` and
    `offers.change_form` take."""

    pictures = _files("pictures", "Pictures", "PNG, JPEG, WebP and GIF")
    pdfs = _files("pdfs", "PDF files")
    texts = _files("texts", "Text files", "TXT and CSV")
    office = _files("office", "Office files", "DOCX and XLSX without macros")
    file_megabytes = forms.IntegerField(label="Largest file, in megabytes", min_value=1, max_value=25)
    files_each = forms.IntegerField(label="Files in a conversation", min_value=1, max_value=100)
    consent_text = _area("Text", "What a visitor agrees to before anything is sent or stored", rows=3, most=2000)
    consent_link = forms.CharField(label="Link for more", max_length=500, required=False)
    consent_version = forms.CharField(
        label="Version",
        max_length=40,
        required=False,
        help_text="Such as 2026-03. With a new one everybody is asked anew",
    )
    conversations = _tick("Several conversations", "Visitors find their earlier ones and begin new ones")
    transcripts = _tick("Transcript by e-mail", "What was said, to the address that the visitor types")
    rating = forms.ChoiceField(label="Rating at the end", choices=[("", "None"), *RatingScale.choices], required=False)

    def __init__(self, *args: Any, place: Deployment, **kwargs: Any) -> None:
        self.place = place
        super().__init__(*args, **kwargs)
        for number in range(offers.MOST_QUESTIONS):
            for name, field in _question_fields().items():
                self.fields[f"q{number}_{name}"] = field
        if not settings.EMAIL_HOST:
            self.fields["transcripts"].help_text = "Needs a mail server, and this installation has none yet"

    @property
    def offered(self) -> dict[str, Any]:
        told = {name: self.cleaned_data[name] for name in offers.FIELDS}
        return {name: replace_unstorable(value) if isinstance(value, str) else value for name, value in told.items()}

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [one for _, one in self._questions()]

    @property
    def asks(self) -> bool:
        """Whether anything stands in the places for questions."""
        return any(self[f"q{n}_{name}"].value() for n in range(offers.MOST_QUESTIONS) for name in ASKED)

    def questions(self) -> list[tuple[int, list[BoundField], bool]]:
        """The places for questions: number, fields, and whether it stands open."""
        used = [n for n in range(offers.MOST_QUESTIONS) if any(self[f"q{n}_{name}"].value() for name in ASKED)]
        last = max(_OPEN_PLACES, *(n + 2 for n in used), 0)
        rows = (([self[f"q{n}_{name}"] for name in ASKED], n) for n in range(offers.MOST_QUESTIONS))
        return [(n + 1, fields, n < last) for fields, n in rows]

    def clean(self) -> dict[str, Any]:
        told = super().clean() or self.cleaned_data
        if set(offers.FIELDS) <= set(self.cleaned_data):
            self._add(offers.problems_of(VisitorOffers(deployment=self.place, **self.offered)), "")
        for number, one in self._questions():
            row = offers.question_of(self.place, number, one)
            self._add(offers.question_problems(row), f"q{number}_")
        return told

    def _questions(self) -> list[tuple[int, dict[str, Any]]]:
        found = []
        for number in range(offers.MOST_QUESTIONS):
            one = {name: self.cleaned_data.get(f"q{number}_{name}", "") for name in ASKED}
            if any(one.values()):
                lines = [replace_unstorable(line).strip() for line in one["choices"].splitlines()]
                choices = list(dict.fromkeys(filter(None, lines)))
                found.append((number, {**one, "label": replace_unstorable(one["label"]), "choices": choices}))
        return found

    def _add(self, problems: dict[str, str], prefix: str) -> None:
        for name, problem in problems.items():
            if f"{prefix}{name}" not in self.errors:
                self.add_error(f"{prefix}{name}", problem)


def _question_fields() -> dict[str, forms.Field]:
    kinds = [("", "Nothing"), *QuestionKind.choices]
    return {
        "kind": forms.ChoiceField(label="Asks for", choices=kinds, required=False),
        "label": forms.CharField(label="Question", max_length=120, required=False),
        "required": _tick("Has to be answered"),
        "choices": _area("Choices", "For a choice: one a line", rows=2, most=1000),
    }


def initial_of(offered: VisitorOffers, questions: Iterable[FormQuestion]) -> dict[str, Any]:
    asked = {
        f"q{number}_{name}": value
        for number, row in enumerate(questions)
        for name, value in {**offers.asked_as(row), "choices": row.choices}.items()
    }
    return {**{name: getattr(offered, name) for name in offers.FIELDS}, **asked}
