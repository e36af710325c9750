"""Who carries out which intent? Rooms above register a handler when they start; nobody but the guard may take one out.

A handler is called with a `CallContext`, outside of any transaction, and answers with a `HandlerResult` or raises
`CallFailed`. Asynchronous handlers run in the caller's loop, others in a thread.
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
    """Make `handler` the one that carries out `intent`; once an intent, at start."""
    if intent in MODEL_RUNS:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: {intent} is made by its caller")
    if intent in _handlers and _handlers[intent] is not handler:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: {intent} has a handler already")
    _handlers[intent] = handler


# Why a call of a tool may not happen, in a code and a sentence, from its name and its context; None: it may.
Policy = Callable[[str, Mapping[str, Any]], tuple[str, str] | None]
_policies: dict[Intent, Policy] = {}


def register_policy(intent: Intent, policy: Policy) -> None:
    """What is asked about every call of `intent` before it is admitted; in a scope of the tenant, and short."""
    _policies[intent] = policy


def _policy_of(intent: Intent) -> Policy | None:
    """For the guard's own door."""
    return _policies.get(intent)


def _handler_of(intent: Intent) -> Handler:
    """For the guard's own door (tests/architecture hold everybody else off)."""
    if intent not in _handlers:
        raise ImproperlyConfigured(f"E_GUARD_HANDLER: nobody carries out {intent}")
    return _handlers[intent]
