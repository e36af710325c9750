"""Typed signals by which a lower room informs the rooms above it.

Receivers run immediately, in the sender's transaction, in the order they were connected. An exception propagates to
the sender, so that an event and the change it announces commit together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Event(Generic[P]):
    """`changed = Event[[UUID, str]]("changed")`; connect with `@changed.connect`, announce with `changed(...)`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._receivers: list[Callable[P, None]] = []

    def connect(self, receiver: Callable[P, None]) -> Callable[P, None]:
        if receiver not in self._receivers:
            self._receivers.append(receiver)
        return receiver

    def disconnect(self, receiver: Callable[P, None]) -> None:
        self._receivers.remove(receiver)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for receiver in tuple(self._receivers):
            receiver(*args, **kwargs)
