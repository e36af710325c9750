"""Connects visitors' prompts, form, files and transcripts to the conversation, its retention and the bus."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from apps.access.tokens import Visitor
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.sessions.registry import (
    register_attachment_reader,
    register_decision_handler,
    register_opening,
    register_precondition,
)
from apps.sessions.schemas import Accepted, DecisionFrame
from apps.sessions.signals import conversations_forgotten
from apps.visitors import attachments, file_storage, forgetting, prechat, proactive_messages, prompts, transcripts
from apps.visitors.models import VisitorCard
from kernel.clock import now
from kernel.tenancy import in_thread

FILES_EVERY = timedelta(hours=1)


def _answer(visitor: Visitor, frame: DecisionFrame) -> Accepted:
    return prompts.answer(visitor, frame.request_id, value=frame.selected_value, words=frame.freetext)


async def _delete_unnamed_files(delivery: Delivery) -> None:
    await in_thread(file_storage.sweep)
    await delivery.reschedule(lambda: now() + FILES_EVERY)


@conversations_forgotten.connect
def _forget(session_ids: Collection[UUID]) -> None:
    """What was asked loses its words, and what was left beside messages is deleted."""
    VisitorCard.objects.filter(session_id__in=session_ids).update(payload={}, chosen="", sealed=None, answers={})
    forgetting.delete_leftovers(session_ids, actor="system", subject="")


register_decision_handler(_answer)
register_opening(proactive_messages.opening_of)
register_precondition(prechat.is_due)
register_attachment_reader(attachments.read)
register_job(Kind.TRANSCRIPT_MAIL, transcripts.send)
on_dead_letter(transcripts.give_up, Kind.TRANSCRIPT_MAIL)
register_job(Kind.FILE_CLEANUP, _delete_unnamed_files, recurring=True)
