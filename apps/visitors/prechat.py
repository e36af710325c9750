"""The pre-chat form: one per conversation, stored once even when sent twice.

Answers are the visitor's own claims: external, shown to staff, no proof of identity. Until a form with required
questions is answered, no message of its conversation is accepted (`is_due`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.addresses import is_email
from apps.visitors.enums import QuestionKind
from apps.visitors.models import FormAnswers, FormQuestion
from apps.visitors.offers import questions_of
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.unicode_safety import has_hidden_characters

LONGEST = {QuestionKind.NAME: 120, QuestionKind.EMAIL: 254, QuestionKind.TEXT: 1000, QuestionKind.CHOICE: 80}
_TOGETHER = {QuestionKind.NAME, QuestionKind.CHOICE, QuestionKind.EMAIL}


def is_shown(deployment_id: UUID, session_id: UUID) -> bool:
    """Whether there is a form that this visitor has not seen off yet. Who has said something already is let be."""
    asked = FormQuestion.objects.filter(deployment_id=deployment_id)
    return bool(asked.exists()) and not _is_past(session_id)


def is_due(session: ChatSession) -> bool:
    """Whether something required was not answered yet."""
    required = FormQuestion.objects.filter(deployment_id=session.deployment_id, required=True)
    return bool(required.exists()) and not _is_past(session.pk)


def _is_past(session_id: UUID) -> bool:
    said = ChronicleEntry.objects.filter(session_id=session_id, kind=EntryKind.MESSAGE, sender=Sender.VISITOR)
    return is_answered(session_id) or bool(said.exists())


def is_answered(session_id: UUID) -> bool:
    return bool(FormAnswers.objects.filter(session_id=session_id).exists())


def answer(session_id: UUID, given: Mapping[str, str]) -> bool:
    """Keep the answers (by question id); False where this conversation has its answers already. Raises `SilasError`
    400 `invalid_answers` with the problem of each question, 409 `form_changed` for questions that are not asked."""
    # Of two answers at once the second finds the first.
    session = lock_session(session_id)
    if is_answered(session_id):
        return False
    questions = questions_of(session.deployment_id)
    if not set(given) <= {str(each.pk) for each in questions}:
        raise SilasError(ErrorCode.FORM_CHANGED)
    values = {each: " ".join(given.get(str(each.pk), "").split()) for each in questions if each.kind in _TOGETHER}
    values |= {each: given.get(str(each.pk), "").strip() for each in questions if each not in values}
    if problems := {str(each.pk): said for each, value in values.items() if (said := _problem(each, value))}:
        raise SilasError(ErrorCode.INVALID_ANSWERS, extra={"fields": problems})
    FormAnswers.objects.create(session_id=session_id, answers=_kept(questions, values), created_at=now())
    data = {"questions": len(questions), "answered": sum(map(bool, values.values()))}
    record(AuditEvent.FORM_ANSWERED, actor="visitor", subject=f"session:{session_id}", data=data)
    return True


def answers_of(session_id: UUID) -> list[dict[str, str]]:
    """`{label, kind, value}` of each that was answered."""
    row: FormAnswers | None = FormAnswers.objects.filter(session_id=session_id).first()
    return [each for each in row.answers if each["value"]] if row else []


def _kept(questions: Sequence[FormQuestion], values: Mapping[FormQuestion, str]) -> list[dict[str, str]]:
    return [
        {"question": str(each.pk), "label": each.label, "kind": each.kind, "value": values[each]} for each in questions
    ]


def _problem(question: FormQuestion, value: str) -> str:
    """A short code; the widget has the words."""
    if not value:
        return "required" if question.required else ""
    if len(value) > LONGEST[QuestionKind(question.kind)]:
        return "too_long"
    if has_hidden_characters(value):
        return "not_shown"
    if question.kind == QuestionKind.EMAIL and not is_email(value):
        return "email"
    return "choice" if question.kind == QuestionKind.CHOICE and value not in question.options else ""
