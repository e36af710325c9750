"""Step 8: run the response gates on the whole answer before it is recorded."""

from __future__ import annotations

from collections import Counter

from apps.approvals.enums import PauseTrigger
from apps.gates.content import ContentMark
from apps.gates.enums import GateTrigger
from apps.sessions import escalations, rules, turn_pauses
from apps.sessions.state import Stop, TurnState
from apps.sessions.steps import answer
from apps.sessions.steps.input_gates import run_gates
from llm.schemas import AgentResponse


async def check(state: TurnState) -> Stop | None:
    """Step 8. A block rephrases or ends the turn by its escalation, a wish for a person pauses it; a rewritten answer
    is what gets recorded."""
    tried: Counter[str] = Counter()
    repeats = escalations.NO_REPEATS if state.resumed_answer else escalations.REPHRASES
    while state.response is not None:
        context = {"response": state.response.message, "message": state.text, "sender": "bot"}
        report = await run_gates(state, GateTrigger.EVERY_AGENT_RESPONSE, context)
        if report.blocked is None:
            message = str(report.context.get("response", state.response.message))
            waits = turn_pauses.held_back(state, report, PauseTrigger.OUTPUT, {"response": message})
            if waits is not None:
                return waits
            suggestions = await _fit_suggestions(state)
            state.response = state.response.model_copy(update={"message": message, "suggestions": suggestions})
            return None
        chosen = escalations.after_block(state, report.blocked, tried, repeats=repeats)
        if isinstance(chosen, Stop):
            return chosen
        stopped = await answer.answer(state, instruction=chosen.instruction, again=True)
        if stopped is not None:
            return stopped
    return None


async def resume(state: TurnState) -> Stop | None:
    """Step 8 of a turn whose answer was held back: the very answer, as it was drafted, passes the gates of today, or
    the safe answer is given."""
    assert state.resumed is not None
    drafted = state.resumed.kept["answer"]
    state.text, state.route, state.model_name = drafted["text"], drafted["route"], drafted["model_name"]
    state.prompts, state.refused_by = tuple(drafted["prompts"]), drafted["refused_by"]
    if (refused := turn_pauses.refusal(state, PauseTrigger.OUTPUT)) is not None:
        return refused
    state.marks = [ContentMark(**mark) for mark in drafted.get("marks", ())]
    state.response = AgentResponse.model_validate(drafted["response"])
    return await check(state)


async def _fit_suggestions(state: TurnState) -> list[str]:
    """What the visitor may press next, if it passes as it stands: words that a model made up are words out as well."""
    if state.response is None:
        return []
    wanted = rules.fitting_suggestions(
        state.response.suggestions,
        asked=state.message.text,
        answer=state.response.message,
        written=state.settings.suggestions,
        greeting=state.settings.greeting,
    )
    if all(suggestion in state.settings.suggestions for suggestion in wanted):
        return wanted
    text = "\n".join(wanted)
    report = await run_gates(state, GateTrigger.EVERY_AGENT_RESPONSE, {"response": text, "message": state.text})
    untouched = report.context.get("response") == text
    return wanted if untouched and not (report.blocked or report.needs_approval) else []
