"""What a deployment offers its visitors beside talking, and changes of it.

Without a row nothing is offered. `change` and `change_form` write before and after into the audit log; texts appear
there as digests. Called by the console and the administration; read by everything that serves visitors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.models import Deployment
from apps.visitors import articles, proactive_messages
from apps.visitors.enums import QuestionKind
from apps.visitors.file_types import KINDS
from apps.visitors.models import FormQuestion, VisitorOffers
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MOST_QUESTIONS = 8
MOST_CHOICES = 20
GROUPS = ("pictures", "pdfs", "texts", "office")
FIELDS = (
    *GROUPS,
    "file_megabytes",
    "files_each",
    "consent_text",
    "consent_link",
    "consent_version",
    "conversations",
    "transcripts",
    "read_receipts",
    "rating",
)
# Of which endings files are, by the group that takes them.
ENDINGS = {group: [end for kind in KINDS.values() if kind.group == group for end in kind.endings] for group in GROUPS}
_TEXTS = {"consent_text", "consent_link"}
OffersReader = Callable[[UUID], Mapping[str, object]]
_more_offers: list[OffersReader] = []


def offers_of(deployment_id: UUID) -> VisitorOffers:
    """Return what is offered; an empty row that is not stored if nothing was configured."""
    row: VisitorOffers | None = VisitorOffers.objects.filter(deployment_id=deployment_id).first()
    return row or VisitorOffers(deployment_id=deployment_id)


def questions_of(deployment_id: UUID) -> list[FormQuestion]:
    return list(FormQuestion.objects.filter(deployment_id=deployment_id).order_by("order", "pk"))


def shown(deployment: Deployment) -> dict[str, Any]:
    """What the widget has to know before there is a conversation."""
    offers, questions = offers_of(deployment.pk), questions_of(deployment.pk)
    endings = [ending for kind in taken_kinds(offers) for ending in KINDS[kind].endings]
    consent = {"text": offers.consent_text, "link": offers.consent_link, "version": offers.consent_version}
    return {
        "files": {"endings": endings, "most_bytes": most_bytes(offers)} if endings else None,
        "consent": consent if offers.consent_text else None,
        "form": [_question(each) for each in questions],
        "conversations": offers.conversations,
        "articles": articles.is_offered(deployment),
        "transcripts": offers.transcripts and bool(settings.EMAIL_HOST),
        "rating": offers.rating,
        "proactive_messages": proactive_messages.shown_to_visitors(deployment.pk),
        **{name: value for more in _more_offers for name, value in more(deployment.pk).items()},
    }


def register_offers(more: OffersReader) -> None:
    """What a room above offers besides, as a deployment's `email_answers` and `continue_in`; runs in the tenant's
    scope."""
    if more not in _more_offers:
        _more_offers.append(more)


def _question(row: FormQuestion) -> dict[str, object]:
    asked = {"id": str(row.pk), "kind": row.kind, "label": row.label, "required": row.required}
    return asked | ({"choices": row.options} if row.kind == QuestionKind.CHOICE else {})


def taken_kinds(offers: VisitorOffers) -> list[str]:
    return [kind.name for kind in KINDS.values() if getattr(offers, kind.group)]


def most_bytes(offers: VisitorOffers) -> int:
    return offers.file_megabytes * 1024 * 1024


def change(deployment: Deployment, *, actor: str, **changes: object) -> VisitorOffers:
    """Write what differs of `FIELDS`. Raises `SilasError("invalid_offers")` with the problem of each field."""
    if unknown := set(changes) - set(FIELDS):
        raise SilasError(ErrorCode.INVALID_OFFERS, gettext("Unknown setting: {unknown}.").format(unknown=min(unknown)))
    row = _locked(deployment)
    before = {name: getattr(row, name) for name in changes}
    changed = [name for name in sorted(changes) if before[name] != changes[name]]
    for name in changed:
        setattr(row, name, changes[name])
    if problems := problems_of(row):
        raise SilasError(ErrorCode.INVALID_OFFERS, " ".join(problems.values()), extra={"fields": problems})
    if changed:
        row.save()
        data = {name: [_told(name, before[name]), _told(name, changes[name])] for name in changed}
        record(AuditEvent.OFFERS_CHANGED, actor=actor, subject=f"deployment:{deployment.pk}", data={"changed": data})
    return row


def _locked(deployment: Deployment) -> VisitorOffers:
    row: VisitorOffers = VisitorOffers.objects.get_or_create(deployment=deployment)[0]
    locked: VisitorOffers = VisitorOffers.objects.select_for_update(no_key=True).get(pk=row.pk)
    return locked


def problems_of(row: VisitorOffers) -> dict[str, str]:
    """What is wrong with these offers, by field."""
    problems: dict[str, str] = {}
    try:
        row.clean_fields(exclude={"deployment", "tenant"})
    except ValidationError as error:
        problems = {name: " ".join(said) for name, said in error.message_dict.items()}
    if bool(row.consent_text) != bool(row.consent_version):
        problems["consent_version"] = gettext("A consent notice needs both a text and a version.")
    return problems


def change_form(deployment: Deployment, questions: Sequence[Mapping[str, object]], *, actor: str) -> list[FormQuestion]:
    """Ask these from now on, in this order: `kind`, `label`, `required`, for a choice its `choices` as a list. Where
    something differs all are new: visitors with the old form open get the new one. Raises
    `SilasError("invalid_form")`."""
    if len(questions) > MOST_QUESTIONS:
        raise SilasError(
            ErrorCode.INVALID_FORM,
            gettext("Use up to {most_questions} questions.").format(most_questions=MOST_QUESTIONS),
        )
    _locked(deployment)
    before = questions_of(deployment.pk)
    rows = [question_of(deployment, order, each) for order, each in enumerate(questions)]
    for problems in filter(None, map(question_problems, rows)):
        raise SilasError(ErrorCode.INVALID_FORM, " ".join(problems.values()), extra={"fields": problems})
    # Compared without ids, in which new rows always differ.
    if [_question(each) | {"id": ""} for each in before] == [_question(each) | {"id": ""} for each in rows]:
        return before
    FormQuestion.objects.filter(deployment=deployment).delete()
    for row in rows:
        row.save(force_insert=True)
    data = {"questions": [len(before), len(rows)], "required": [_required(before), _required(rows)]}
    record(AuditEvent.OFFERS_CHANGED, actor=actor, subject=f"deployment:{deployment.pk}", data=data)
    return rows


def question_problems(row: FormQuestion) -> dict[str, str]:
    """What is wrong with a question, by field."""
    problems = {}
    if row.kind not in QuestionKind.values:
        problems["kind"] = gettext("Choose a type for each question.")
    if not row.label.strip() or len(row.label) > 120:
        problems["label"] = gettext("Enter a label of up to 120 characters for each question.")
    if (row.kind == QuestionKind.CHOICE) != bool(row.options):
        problems["choices"] = gettext("Only questions of the type choice can have choices, and they need some.")
    elif len(row.options) > MOST_CHOICES or any(len(each) > 80 for each in row.options):
        problems["choices"] = gettext("Use up to {most_choices} choices of up to 80 characters.").format(
            most_choices=MOST_CHOICES
        )
    elif len(row.choices) > 1000:
        problems["choices"] = gettext("Use up to 1000 characters in total.")
    return problems


def copy(source: Deployment, target: Deployment, *, actor: str) -> None:
    """Offer at `target` what is offered at `source`, and ask the same before the first word."""
    offered = offers_of(source.pk)
    change(target, actor=actor, **{name: getattr(offered, name) for name in FIELDS})
    change_form(target, [asked_as(row) for row in questions_of(source.pk)], actor=actor)


def asked_as(row: FormQuestion) -> dict[str, object]:
    """A question as `change_form` takes it."""
    return {"kind": row.kind, "label": row.label, "required": row.required, "choices": row.options}


def question_of(deployment: Deployment, order: int, asked: Mapping[str, Any]) -> FormQuestion:
    """The row that `change_form` makes of it, not stored."""
    choices = "\n".join(" ".join(str(each).split()) for each in asked.get("choices", ()))
    label, kind = " ".join(str(asked.get("label", "")).split()), str(asked.get("kind", ""))
    required = bool(asked.get("required"))
    return FormQuestion(deployment=deployment, order=order, kind=kind, label=label, required=required, choices=choices)


def _required(rows: Sequence[FormQuestion]) -> int:
    return sum(row.required for row in rows)


def _told(name: str, value: object) -> object:
    return sha256_hex(str(value))[:16] if name in _TEXTS and value else value
