"""Parse the lines of a set-up script: the script's half of the NDJSON protocol, read strictly (spec 5.10.1).

One JSON object a line. A line that is no message of the protocol is ignored and counted; a message at the wrong point
ends the conversation. Pure: no process, no row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from pydantic import ValidationError

from apps.connections.schemas import (
    EVENT,
    AwaitInputEvent,
    Completed,
    CompletionEvent,
    ConnectionFailure,
    FailureEvent,
    LogEvent,
    SetupStepEvent,
    Step,
)

# A script may print to its output by mistake; with more ignored lines than this it is broken.
MOST_IGNORED, MOST_STEPS = 1000, 50


class ProtocolBroken(Exception):
    """The script broke the protocol; `code` says how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class ShowStep:
    """Show this step to the person."""

    step_id: str
    step: Step


@dataclass(frozen=True)
class AwaitAnswer:
    """The script waits for the person's answer to this step."""

    step_id: str


Action = ShowStep | AwaitAnswer | Completed | ConnectionFailure


@dataclass
class Conversation:
    """State of one conversation. `ignored` counts the lines that were no messages."""

    ignored: int = 0
    steps: dict[str, Step] = field(default_factory=dict)
    current: str = ""
    ended: bool = False

    def read_line(self, line: str) -> Action | None:
        """Return what to do about this line, None for nothing. Raises `ProtocolBroken`: `wrong_step`, `step_twice`,
        `after_the_end`, `too_much_noise`, `too_many_steps`."""
        event = _parse(line)
        if event is None or isinstance(event, LogEvent):
            self.ignored += event is None
            if self.ignored > MOST_IGNORED:
                raise ProtocolBroken("too_much_noise")
            return None
        if self.ended:
            raise ProtocolBroken("after_the_end")
        match event:
            case SetupStepEvent():
                return self._show_step(event)
            case AwaitInputEvent():
                if event.step_id != self.current:
                    raise ProtocolBroken("wrong_step")
                return AwaitAnswer(event.step_id)
            case CompletionEvent():
                self.ended = True
                return event.connection_payload
            case FailureEvent():
                self.ended = True
                return event.failure

    def _show_step(self, event: SetupStepEvent) -> ShowStep:
        # Each step is shown once; only a progress step may be repeated, with another message.
        before = self.steps.get(event.step_id)
        if before is not None and not (before.type == event.step.type == "progress"):
            raise ProtocolBroken("step_twice")
        if len(self.steps) >= MOST_STEPS and before is None:
            raise ProtocolBroken("too_many_steps")
        self.steps[event.step_id] = event.step
        self.current = event.step_id
        return ShowStep(event.step_id, event.step)


def _parse(line: str) -> SetupStepEvent | AwaitInputEvent | CompletionEvent | FailureEvent | LogEvent | None:
    # Deeply nested JSON raises RecursionError.
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        return EVENT.validate_python(message)
    except ValidationError:
        return None


def last_object(output: str) -> dict[str, object] | None:
    """Return the last line of a one-shot script's output that is a JSON object, or None."""
    for line in reversed(output.splitlines()):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
