"""Step 8: does policy let this answer out? The whole answer passes the response gates before it is recorded."""

from __future__ import annotations

from collections import Counter

from apps.gates.enums import GateTrigger
from apps.sessions import escalations
from apps.sessions.state import Stop, TurnState
from apps.sessions.steps import answer
from apps.sessions.steps.input_gates import run_gates


async def check(state: TurnState) -> Stop | None:
    """Step 8. A block rephrases or ends the turn by its escalation; a rewritten answer is what gets recorded."""
    tried: Counter[str] = Counter()
    while state.response is not None:
        context = {"response": state.response.message, "message": state.text, "sender": "bot"}
        report = await run_gates(state, GateTrigger.EVERY_AGENT_RESPONSE, context)
        problem = report.blocked or report.needs_approval
        if problem is None:
            message = str(report.context.get("response", state.response.message))
            suggestions = await _fit_suggestions(state)
            state.response = state.response.model_copy(update={"message": message, "suggestions": suggestions})
            return None
        chosen = escalations.after_block(state, problem, tried, repeats=escalations.REPHRASES)
        if isinstance(chosen, Stop):
            return chosen
        stopped = await answer.answer(state, instruction=chosen.instruction, again=True)
        if stopped is not None:
            return stopped
    return None


async def _fit_suggestions(state: TurnState) -> list[str]:
    """What the visitor may press next, if it passes as it stands: words that a model made up are words out as well."""
    wanted = list(state.response.suggestions) if state.response else []
    if all(suggestion in state.session.deployment.suggestions for suggestion in wanted):
        return wanted
    text = "\n".join(wanted)
    report = await run_gates(state, GateTrigger.EVERY_AGENT_RESPONSE, {"response": text, "message": state.text})
    untouched = report.context.get("response") == text
    return wanted if untouched and not (report.blocked or report.needs_approval) else []
