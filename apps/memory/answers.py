"""Do what a person answered to a question about memories (spec 6.4)."""

from __future__ import annotations

from uuid import UUID

from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory.enums import ArchiveReason, MergeReason, QuestionKind, QuestionState
from apps.memory.models import MemoryConsolidation, MemoryItem, MemoryQuestion
from apps.memory.promotion import make_profile
from apps.memory.questions import KEEP_OLDER
from kernel.clock import now
from kernel.tenancy import current_tenant_id


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Do what a person answered, in the transaction of their answer; nothing if a memory is gone or changed."""
    question = (
        MemoryQuestion.objects.select_for_update(no_key=True)
        .filter(pk=card.subject_id, state=QuestionState.OPEN)
        .first()
    )
    if question is None:
        return
    kept = None
    if decision.verdict == ApprovalVerdict.APPROVED:
        if question.kind == QuestionKind.PROFILE:
            kept = _keep_profile(card, question)
        else:
            kept = _keep_one(card, question, older=decision.said.get("choice") == KEEP_OLDER)
    state = QuestionState.ANSWERED if kept else QuestionState.DISMISSED
    MemoryQuestion.objects.filter(pk=question.pk).update(
        state=state, kept_id=kept, decided_by=decision.user, decided_at=now()
    )
    actor = f"user:{decision.user_id}"
    data = {"kind": question.kind, "state": state.value, "kept": str(kept or "")}
    record(AuditEvent.MEMORY_DECIDED, actor=actor, subject=f"memory:{question.memory_id}", data=data)


def _keep_profile(card: Card, question: MemoryQuestion) -> UUID | None:
    """The profile memory, if the fact still says what the card showed."""
    fact = (
        MemoryItem.objects.select_for_update(no_key=True)
        .filter(pk=question.memory_id, archived_at__isnull=True, content=card.facts[0]["text"])
        .first()
    )
    return None if fact is None else make_profile(fact).pk


def _keep_one(card: Card, question: MemoryQuestion, *, older: bool) -> UUID | None:
    """Archive the memory that was not chosen, if both still say what the card showed; returns the kept one."""
    ids = (question.memory_id, question.other_id)
    # Locked in the order of their ids, so that two answers cannot wait for each other (deadlock).
    rows = MemoryItem.objects.filter(pk__in=ids, archived_at__isnull=True).order_by("pk")
    found = {row.pk: row for row in rows.select_for_update(no_key=True)}
    shown = dict(zip(ids, (fact["text"] for fact in card.facts[:2]), strict=True))
    if {pk: row.content for pk, row in found.items()} != shown:
        return None
    kept, other = (found[pk] for pk in (ids if older else ids[::-1]))
    moment = now()
    MemoryItem.objects.filter(pk=other.pk).update(
        archived_at=moment, archive_reason=ArchiveReason.CONTRADICTED, pinned=False
    )
    MemoryConsolidation.objects.get_or_create(
        tenant_id=current_tenant_id(),
        merged_id=other.pk,
        defaults={
            "kept_id": kept.pk,
            "reason": MergeReason.CONTRADICTED,
            "taint_before": other.taint,
            "taint_after": kept.taint,
            "type_before": other.memory_type,
            "type_after": kept.memory_type,
            "created_at": moment,
        },
    )
    return kept.pk
