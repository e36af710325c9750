"""Functions that rooms above conversations register at start: they take the answers to prompts, say what has to be done
before the first message, and know when the team that a conversation waits for answers and whether it is available."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

from apps.access.tokens import Visitor
from apps.sessions.models import ChatSession
from apps.sessions.schemas import Accepted, DecisionFrame
from apps.tenants.hours import Schedule
from llm.attachments import Attachment

DecisionHandler = Callable[[Visitor, DecisionFrame], Accepted]
# The files of a conversation's entries behind this place, oldest first. Opens its own scope.
AttachmentReader = Callable[[UUID, UUID, int], tuple[Attachment, ...]]
# The text of the proactive message that a visitor answers, to be recorded before their answer; empty for none.
Opening = Callable[[ChatSession, UUID], str]
# True while the visitor still has something to do before a message of theirs is accepted.
Precondition = Callable[[ChatSession], bool]
# The hours of the team that this conversation waits for; None where they are the chatbot's.
ScheduleReader = Callable[[ChatSession], Schedule | None]
# Whether a member of the team that this conversation waits for is available; True where that is not known.
AvailabilityReader = Callable[[ChatSession], bool]
# Up to which entry the person who answers has read, as far as the visitor may know; 0 otherwise.
ReadStateReader = Callable[[ChatSession], int]

_decision_handlers: list[DecisionHandler] = []
_openings: list[Opening] = []
_preconditions: list[Precondition] = []
_attachment_readers: list[AttachmentReader] = []
_schedule_readers: list[ScheduleReader] = []
_availability_readers: list[AvailabilityReader] = []
_read_state_readers: list[ReadStateReader] = []


def register_decision_handler(handler: DecisionHandler) -> None:
    """Who records what a visitor chose; one for the process. Runs in the tenant's scope and transaction."""
    if _decision_handlers and _decision_handlers != [handler]:
        raise ImproperlyConfigured("E_SESSIONS_DECISIONS: answers to prompts have a handler already")
    _decision_handlers[:] = [handler]


def register_opening(opening: Opening) -> None:
    """Register a reader of proactive messages. It runs on the locked session, in the transaction that stores the
    answer."""
    if opening not in _openings:
        _openings.append(opening)


def register_precondition(precondition: Precondition) -> None:
    """Runs in the tenant's scope when a visitor connects, and before each message while it holds."""
    if precondition not in _preconditions:
        _preconditions.append(precondition)


def register_attachment_reader(reader: AttachmentReader) -> None:
    """Who reads visitors' files for models. Runs in a thread, outside of any scope."""
    if reader not in _attachment_readers:
        _attachment_readers.append(reader)


def register_schedule(reader: ScheduleReader) -> None:
    """Who knows the hours of a handover's team. Runs in the tenant's scope and transaction."""
    if reader not in _schedule_readers:
        _schedule_readers.append(reader)


def register_availability(reader: AvailabilityReader) -> None:
    """Register a reader of members' availability. It runs in the tenant's scope when a visitor who waits connects."""
    if reader not in _availability_readers:
        _availability_readers.append(reader)


def register_read_state(reader: ReadStateReader) -> None:
    """Who knows what staff have read. Runs in the tenant's scope when a visitor connects."""
    if reader not in _read_state_readers:
        _read_state_readers.append(reader)


def read_by_staff(session: ChatSession) -> int:
    return max((reader(session) for reader in _read_state_readers), default=0)


def schedule_of(session: ChatSession) -> Schedule | None:
    return next((found for reader in _schedule_readers if (found := reader(session)) is not None), None)


def is_team_available(session: ChatSession) -> bool:
    return all(reader(session) for reader in _availability_readers)


def read_attachments(tenant_id: UUID, session_id: UUID, after: int) -> tuple[Attachment, ...]:
    return tuple(file for reader in _attachment_readers for file in reader(tenant_id, session_id, after))


def handle_decision(visitor: Visitor, frame: DecisionFrame) -> Accepted:
    (handler,) = _decision_handlers
    return handler(visitor, frame)


def opening_of(session: ChatSession, message_id: UUID) -> str:
    return next((text for opening in _openings if (text := opening(session, message_id))), "")


def is_form_due(session: ChatSession) -> bool:
    return any(precondition(session) for precondition in _preconditions)
