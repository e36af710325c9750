"""Validate gates when they are written; the runner blocks on an invalid gate anyway.

The author of a gate should see a mistake, not the visitors whom it blocks or lets through. Problems are sentences for
the author, by field. Used by `services.versions` and forms. Depends on nothing else but whether guardrails-ai is
installed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from apps.gates.enums import GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateSpec
from apps.gates.settings_checks import check_whole, check_words
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, gettext_lazy

LONGEST_FIELD = 20_000
# Seconds that a gate may wait for a person.
SHORTEST_WAIT, LONGEST_WAIT = 10, 86_400
# A step gate asks for approval before anything takes effect (ADR 101); the report exists only afterwards.
ASKS_LATE = gettext_lazy("a step gate that may need approval must name the value it checks, or always need approval")


# Not in `GateSpec`: goals and versions that are stored are read with it, and a stricter rule of tomorrow must not make
# the gate of yesterday unreadable. A stored gate that cannot work blocks when it runs.
def problems_of(gate: GateSpec) -> dict[str, str]:
    """Problems of a gate, by field; empty if it is valid."""
    problems: dict[str, str] = {}
    for field, problem in _problems(gate):
        problems.setdefault(field, problem)
    return problems


def require_valid(gate: GateSpec) -> None:
    """Raises 422 `gate_invalid` with what is wrong by field."""
    problems = problems_of(gate)
    if problems:
        first = next(iter(problems.values()))
        raise SilasError(
            ErrorCode.GATE_INVALID,
            gettext("This gate isn't valid: {first}").format(first=first),
            extra={"fields": problems},
        )


def _problems(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _storable(gate)
    yield from _places(gate)
    yield from PROVIDERS[gate.provider].problems(gate)


def _storable(gate: GateSpec) -> Iterator[tuple[str, str]]:
    """What a row cannot store (NUL, lone surrogates, NaN), and oversized fields."""
    try:
        fields = gate.to_plan_dict()
    except (ValueError, RecursionError):
        yield "config", gettext("it is nested too deeply")
        return
    for field, value in fields.items():
        try:
            # As the row would hold it: PostgreSQL takes no NUL and no lone surrogates, JSON no NaN.
            written = json.dumps(value, ensure_ascii=False, allow_nan=False)
            written.encode()
        except (ValueError, TypeError):
            yield field, gettext("it contains a value that can't be stored")
            continue
        if "\\u0000" in written:
            yield field, gettext("it contains a character that can't be stored")
        if len(written) > LONGEST_FIELD:
            yield field, gettext("it is longer than {count} characters").format(count=LONGEST_FIELD)


def _places(gate: GateSpec) -> Iterator[tuple[str, str]]:
    if "tools" in gate.config:
        if gate.on not in (GateTrigger.ON_TOOL_CALL, GateTrigger.ON_CONTENT):
            yield "config", gettext("tools can only be set for gates that run on tool calls or on content")
        yield from check_words(gate.config, "tools")
    if gate.on == GateTrigger.ON_CONTENT and not PROVIDERS[gate.provider].reads_only_text:
        yield "provider", gettext("content can only be checked by rules and detectors")
    if not isinstance(gate.config.get("standing_approval_counts", False), bool):
        yield "config", gettext("{name} must be true or false").format(name="standing_approval_counts")
    if "wait_seconds" in gate.config:
        yield from check_whole(gate.config, "wait_seconds", least=SHORTEST_WAIT, most=LONGEST_WAIT)
    if gate.after_step is not None and gate.after_step < 1:
        yield "after_step", gettext("steps are counted from 1")
    if gate.checks_report and gate.may_need_approval:
        yield "extract", str(ASKS_LATE)
