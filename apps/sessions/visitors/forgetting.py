"""Delete what a forgotten visitor left beside messages: files, form answers, the comment of their rating, addresses of
transcripts not yet sent. Consents and the rating itself stay."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.enums import TranscriptState
from apps.sessions.models import FormAnswers, Rating, TranscriptRequest, VisitorCard, VisitorFile
from apps.sessions.visitors import file_storage


def left_in(session_ids: Collection[UUID]) -> int:
    """How many files and forms there are in these conversations."""
    files = VisitorFile.objects.filter(session_id__in=session_ids).count()
    forms = FormAnswers.objects.filter(session_id__in=session_ids).count() + _filled_in(session_ids).count()
    return int(files + forms)


def forget(session_ids: Collection[UUID], *, actor: str, subject: str) -> None:
    """Delete it. Inside the scope of whoever forgets; the bytes go once that has committed."""
    files = list(VisitorFile.objects.filter(session_id__in=session_ids))
    VisitorFile.objects.filter(pk__in=[each.pk for each in files]).delete()
    file_storage.let_go(each.digest for each in files)
    forms, _ = FormAnswers.objects.filter(session_id__in=session_ids).delete()
    forms += _filled_in(session_ids).update(answers={})
    comments = Rating.objects.filter(session_id__in=session_ids).exclude(comment="").update(comment="")
    owed = TranscriptRequest.objects.filter(session_id__in=session_ids, state=TranscriptState.OWED)
    letters = owed.update(state=TranscriptState.GIVEN_UP, address="", settled_at=Now())
    data = {"files": len(files), "forms": forms, "comments": comments, "letters": letters}
    if any(data.values()):
        record(AuditEvent.VISITOR_LEFTOVERS_FORGOTTEN, actor=actor, subject=subject, data=data)


def _filled_in(session_ids: Collection[UUID]) -> QuerySet[VisitorCard]:
    cards: QuerySet[VisitorCard] = VisitorCard.objects.filter(session_id__in=session_ids).exclude(answers={})
    return cards
