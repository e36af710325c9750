"""Answer one message: the named steps of spec 5.1, in order, in three parts.

The opening is one transaction: lease, rows, frozen policy. Everything slow runs between the transactions: gates,
retrieval, models, tools. The closing is one transaction again: everything that the turn says and does is recorded
together with the end of its lease, or not at all. A step returns None to go on, or a `Stop` that skips to the closing.
Levels rise right after the gates that earned them, before any tool is offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from apps.sessions import proposals
from apps.sessions.state import Stop, TurnState
from apps.sessions.steps import answer, closing, context, input_gates, memory, opening, output_gates, tools
from kernel.tenancy import with_retry
from llm import loading


@dataclass(frozen=True)
class Step:
    """A step of spec 5.1: its number there, its name as stored, and what it does."""

    number: str
    name: str


@dataclass(frozen=True)
class SlowStep(Step):
    """Runs between the transactions; may wait."""

    run: Callable[[TurnState], Awaitable[Stop | None]]


@dataclass(frozen=True)
class ClosingStep(Step):
    """Runs inside the closing transaction; `after_stop` also when an earlier step stopped the turn."""

    run: Callable[[TurnState], None]
    after_stop: bool = False


OPENING: tuple[Step, ...] = (
    Step("0", "precompile_gates"),
    Step("0.5", "review_queue"),
)
BETWEEN: tuple[SlowStep, ...] = (
    SlowStep("1", "input_gates", input_gates.check),
    SlowStep("14", "update_access", input_gates.apply_levels),
    SlowStep("2", "taint", context.classify),
    SlowStep("3", "chronicle", context.remember_message),
    SlowStep("4", "retrieve", context.retrieve),
    SlowStep("4", "look_at_content", context.look_at_content),
    SlowStep("5", "token_budget", context.enforce_budget),
    SlowStep("6", "toolset", tools.build),
    SlowStep("7", "answer", answer.route_and_answer),
    SlowStep("8", "output_gates", output_gates.check),
    SlowStep("9", "memory_requests", memory.take_requests),
)
# Of a message whose answer was held back until a person had looked (ADR 101).
RESUMED: tuple[SlowStep, ...] = (
    SlowStep("8", "output_gates", output_gates.resume),
    SlowStep("9", "memory_requests", memory.take_requests),
)
# Of a message that a person answers (ADR 43).
OVERHEARD: tuple[SlowStep, ...] = (SlowStep("1", "input_gates", input_gates.overhear),)
CLOSING: tuple[ClosingStep, ...] = (
    ClosingStep("8", "escalate", closing.escalate, after_stop=True),
    ClosingStep("10", "memory_ops", memory.carry_out),
    ClosingStep("12", "screen_plan", closing.screen_plan),
    ClosingStep("11", "record_response", closing.record_response, after_stop=True),
    ClosingStep("11.5", "keep_raw", memory.keep_raw, after_stop=True),
    ClosingStep("12", "propose_plan", closing.propose_plan),
    ClosingStep("13", "hand_over", closing.hand_over, after_stop=True),
    ClosingStep("15", "record_outcome", closing.record_outcome, after_stop=True),
    ClosingStep("15", "move_mood", closing.move_mood, after_stop=True),
    ClosingStep("16", "finish", closing.finish, after_stop=True),
)
STEPS: tuple[Step, ...] = (*OPENING, *BETWEEN, *CLOSING)


def open_turn(session_id: UUID, *, consumer: str) -> TurnState | None:
    """Take the oldest message that waits for an answer; None when there is none. Steps 0 and 0.5, inside a scope."""
    return opening.open_turn(session_id, consumer=consumer)


async def run(state: TurnState) -> None:
    """Answer the message of an opened turn. Raises what its steps raise; the caller gives the message back.

    An answer that is there waits for a database that is away: closing twice is refused by the lease's fence.
    """
    await loading.loaded()
    for step in OVERHEARD if state.overheard else RESUMED if state.resumed_answer else BETWEEN:
        state.step = step.name
        state.stop = await step.run(state)
        if state.stop is not None:
            break
    await with_retry(state.tenant_id, settings.TURN_LEASE_SECONDS, close_turn, state)


def close_turn(state: TurnState) -> None:
    """The closing transaction. A turn whose conversation a person took over records what its gates said, and that."""
    # Before `still_ours`, which locks the conversation: the rows of work come first in the order of locks.
    proposals.hold(state)
    if not closing.still_ours(state):
        return
    for step in CLOSING:
        if step.after_stop or state.stop is None:
            state.step = step.name if state.stop is None else state.step
            step.run(state)


def give_back(state: TurnState, *, reason: str) -> None:
    """The turn failed: charge what its models cost and put the message back for another attempt. Inside a scope."""
    closing.fail(state, reason=reason)
