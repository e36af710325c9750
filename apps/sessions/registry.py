"""What rooms above a conversation add to it at start: who takes the answers to prompts, and what has to be done before
the first message."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ImproperlyConfigured

from apps.access.tokens import Visitor
from apps.sessions.models import ChatSession
from apps.sessions.schemas import Accepted, DecisionFrame

DecisionHandler = Callable[[Visitor, DecisionFrame], Accepted]
# True while the visitor still has something to do before a message of theirs is accepted.
Precondition = Callable[[ChatSession], bool]

_decision_handlers: list[DecisionHandler] = []
_preconditions: list[Precondition] = []


def register_decision_handler(handler: DecisionHandler) -> None:
    """Who records what a visitor chose; one for the process. Runs in the tenant's scope and transaction."""
    if _decision_handlers and _decision_handlers != [handler]:
        raise ImproperlyConfigured("E_SESSIONS_DECISIONS: answers to prompts have a handler already")
    _decision_handlers[:] = [handler]


def register_precondition(precondition: Precondition) -> None:
    """Runs in the tenant's scope when a visitor connects, and before each message while it holds."""
    if precondition not in _preconditions:
        _preconditions.append(precondition)


def handle_decision(visitor: Visitor, frame: DecisionFrame) -> Accepted:
    (handler,) = _decision_handlers
    return handler(visitor, frame)


def is_form_due(session: ChatSession) -> bool:
    return any(precondition(session) for precondition in _preconditions)
