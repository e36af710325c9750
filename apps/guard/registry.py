"""Register the handler of each intent. Rooms above register theirs at start; only the guard may look one up.

A handler is called with a `CallContext`, outside of any transaction, and returns a `HandlerResult` or raises
`CallFailed`. Async handlers run in the caller's loop, others in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from apps.guard.enums import Intent
from apps.guard.rules import MODEL_RUNS
from apps.guard.schemas import CallContext, HandlerResult

Handler = Callable[[CallContext], HandlerResult | Awaitable[HandlerResult]]

_handlers: dict[Intent, Handler] = {}


def register(intent: Intent, handler: Handler) -> None:
    """Register the handler of `intent`, once, at start."""
    if intent in MODEL_RUNS:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: {intent} is carried out by its caller")
    if intent in _handlers and _handlers[intent] is not handler:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: {intent} has a handler already")
    _handlers[intent] = handler


def intents_without_handlers() -> list[Intent]:
    """Return the intents that no room carries out, except those that their caller does."""
    return [intent for intent in Intent if intent not in _handlers and intent not in MODEL_RUNS]


# Takes a tool's name and the context of a call; returns why it may not happen, as a code and a sentence, or None.
Policy = Callable[[str, Mapping[str, Any]], tuple[str, str] | None]
_policies: dict[Intent, Policy] = {}


def register_policy(intent: Intent, policy: Policy) -> None:
    """Register a check of every call of `intent`. It runs before admission, in the tenant's scope, and must be
    quick."""
    _policies[intent] = policy


def _handler_of(intent: Intent) -> Handler:
    # Only for guarded calls; tests/architecture/test_dispatch.py fails if another module uses it.
    if intent not in _handlers:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: {intent} has no handler")
    return _handlers[intent]
