"""The source of recorded input, registered by the room that keeps conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.gates.allowance import AskModel
from apps.gates.enums import GateTrigger
from apps.gates.models import Gate
from apps.gates.schemas import GateSpec
from apps.tenants.models import Deployment
from sandbox.spec import Mount

Files = dict[str, dict[str, Mount]]


@dataclass(frozen=True)
class Recorded:
    """A recorded message, answer or call, with the context that gates evaluate.

    `place` and `seq`: the conversation and the number in it, or the work item and 0. `excerpt` is for people who may
    read it.
    """

    trigger: GateTrigger
    place: UUID
    seq: int
    at: datetime
    excerpt: str
    context: Mapping[str, Any]


@dataclass(frozen=True)
class TurnGates:
    """The gates that a turn would run, with the goal's own.

    `level_gates`: names that some access level requires. `files_of`: what these script gates may see, read in a scope.
    """

    gates: tuple[GateSpec, ...]
    level_gates: frozenset[str]
    files_of: Callable[[tuple[GateSpec, ...], Mapping[str, object]], Files]


@dataclass(frozen=True)
class BacktestSource:
    """What a dry run reads from above.

    `recorded`: the newest input of these triggers, newest first, at most so many. `turn_gates`: the gates of a turn
    with each of these sets in the place of the stored ones. Both are called in the tenant's scope. `judge`: asks models
    about a gate at a deployment, for at most so many dollars, until it is closed.
    """

    recorded: Callable[[Deployment, set[GateTrigger], int], tuple[Recorded, ...]]
    turn_gates: Callable[[Deployment, tuple[GateSpec, ...], tuple[GateSpec, ...]], tuple[TurnGates, TurnGates]]
    judge: Callable[[Gate, Deployment, Decimal], AbstractAsyncContextManager[AskModel]]


_sources: list[BacktestSource] = []


def register_source(source: BacktestSource) -> None:
    """Called once, when Django is ready. Raises `ValueError` when there is a source already."""
    if _sources:
        raise ValueError("There is a source of recorded input already.")
    _sources.append(source)


def source() -> BacktestSource:
    return _sources[0]
