"""What does a line of a set-up script mean? The script's half of the NDJSON protocol, read strictly (spec 5.10.1).

One JSON object a line. What is no message of the protocol is left out and counted; what is one and stands where it
cannot stand ends the conversation. Pure: no process, no row.
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

# More lines than this that mean nothing are no noise any more.
MOST_IGNORED, MOST_STEPS = 1000, 50


class ProtocolBroken(Exception):
    """The script does not keep the protocol; `code` says how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class ShowStep:
    """Put this step before the person."""

    step_id: str
    step: Step


@dataclass(frozen=True)
class AwaitAnswer:
    """The script waits for what the person says to this step."""

    step_id: str


Action = ShowStep | AwaitAnswer | Completed | ConnectionFailure


@dataclass
class Conversation:
    """Where it stands. `ignored` counts the lines that meant nothing."""

    ignored: int = 0
    steps: dict[str, Step] = field(default_factory=dict)
    current: str = ""
    ended: bool = False

    def hear(self, line: str) -> Action | None:
        """What to do about this line; None: nothing. Raises `ProtocolBroken`: `wrong_step`, `step_twice`,
        `after_the_end`, `too_much_noise`, `too_many_steps`."""
        event = _parse(line)
        if event is None or isinstance(event, LogEvent):
            self.ignored += event is None
            if self.ignored > MOST_IGNORED:
                raise ProtocolBroken("too_much_noise")
            return None
        if self.ended:
            raise ProtocolBroken("after_the_end")
        return self._take(event)

    def _take(self, event: SetupStepEvent | AwaitInputEvent | CompletionEvent | FailureEvent) -> Action:
        match event:
            case SetupStepEvent():
                return self._shown(event)
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

    def _shown(self, event: SetupStepEvent) -> ShowStep:
        """A step shows once; the message of one that only tells how far it is may change."""
        before = self.steps.get(event.step_id)
        if before is not None and not (before.type == event.step.type == "progress"):
            raise ProtocolBroken("step_twice")
        if len(self.steps) >= MOST_STEPS and before is None:
            raise ProtocolBroken("too_many_steps")
        self.steps[event.step_id] = event.step
        self.current = event.step_id
        return ShowStep(event.step_id, event.step)


def _parse(line: str) -> SetupStepEvent | AwaitInputEvent | CompletionEvent | FailureEvent | LogEvent | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    try:
        return EVENT.validate_python(said)
    except ValidationError:
        return None


def last_object(output: str) -> dict[str, object] | None:
    """What a script that answers once said: its last line that is a JSON object, or None."""
    for line in reversed(output.splitlines()):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict):
            return said
    return None
