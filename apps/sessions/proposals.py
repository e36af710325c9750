"""Hand a plan that the bot proposed to the work room, and tell the visitor what it waits for or why it was refused.

Runs inside the turn's closing transaction, so that the answer and its promise are recorded together (spec 5.1.2, step
12).
"""

from __future__ import annotations

from uuid import UUID

from apps.gates.content import sentences
from apps.sessions import value_sources
from apps.sessions.state import Fix, TurnState
from apps.work import services as work
from apps.work.interaction import DEFAULT_HINTS, InteractionHints
from apps.work.locks import lock_customer
from apps.work.schemas import Proposal
from kernel.clock import now
from kernel.ids import parse_id
from kernel.language import gettext_lazy, in_language
from llm.enums import PlanActionType
from llm.schemas import PlanAction

# What names no work at all is refused like work that is not there.
_NOWHERE = UUID(int=0)
REFUSED = gettext_lazy("I can't do this: {reason}")


def hold(state: TurnState) -> None:
    """Lock what the answer's plan is about before the conversation; every other caller that locks both uses that order
    (`apps.work.locks`)."""
    action = state.response.plan_action if state.response and state.stop is None else None
    subject = state.access.at(now()).subject
    if action is not None and action.action == PlanActionType.ABORT:
        found = work.lock_cancellable(session_id=state.session.pk, subject=subject)
        state.called_off = (found, subject) if found else None
    plans = action is not None and bool(action.plan_markdown)
    if plans or state.refused_by or (state.stop is not None and state.stop.fix is not None):
        lock_customer(subject)


def screen(state: TurnState, *, language: str) -> None:
    """Before the answer is recorded: what may become of its plan. A refusal is all that is said, in the house's words:
    what a model wrote of a plan that there will not be is no answer, here or in memory."""
    action = state.response.plan_action if state.response else None
    if state.response is None or action is None or not _is_plan(action):
        return
    access = state.access.at(now())
    with in_language(language):
        found = work.screen(
            deployment=state.session.deployment,
            session_id=state.session.pk,
            plan_markdown=str(action.plan_markdown),
            access=access.allowed_tools(),
            subject=access.subject,
            gates=state.policy.gates,
            trace_id=state.lease.message.trace_id,
            continuation_of=_earlier(action.continuation_of),
            # The model chooses no mode after it has read instructions to the assistant.
            hints=DEFAULT_HINTS
            if state.marks
            else InteractionHints(planner_override=action.interaction_mode_override, initiative=initiative_of(state)),
            marks=sentences(state.marks),
            tracing=value_sources.tracing_of(state),
        )
        if not isinstance(found, Proposal):
            state.screened = found
            return
        refusal = str(REFUSED).format(reason=found.reason)
    state.refused_by, state.answer_note = found.gate, None
    state.response = state.response.model_copy(update={"message": refusal, "citations": [], "suggestions": []})


def propose(state: TurnState) -> None:
    """A plan that was let pass goes to work; anything else a planner may ask for waits for the issue that builds it."""
    action = state.response.plan_action if state.response else None
    if action is not None and action.action == PlanActionType.ABORT:
        _call_off(state)
    if state.screened is not None:
        work.accept_plan(state.screened)


def initiative_of(state: TurnState) -> float:
    """The initiative of the deployment's personality, 0 to 1."""
    return state.tone.initiative if state.tone else DEFAULT_HINTS.initiative


def _is_plan(action: PlanAction) -> bool:
    return action.action in (PlanActionType.PROPOSE, PlanActionType.REVISE) and bool(action.plan_markdown)


def fix(state: TurnState, wanted: Fix) -> bool:
    """The task that a block starts waits for its yes; False when it cannot be asked for. What is asked for already
    counts as asked."""
    proposal = work.propose_fix(
        wanted.template,
        deployment=state.session.deployment,
        session_id=state.session.pk,
        about={**wanted.about, "conversation": str(state.session.pk)},
        subject=state.access.at(now()).subject,
        gates=state.policy.gates,
        trace_id=state.lease.message.trace_id,
    )
    return proposal.outcome != "refused" or proposal.code == "waiting_already"


def _call_off(state: TurnState) -> None:
    """The visitor no longer wants what they wait for; said by a model, so only where it is clear what is meant."""
    if state.called_off is not None:
        item_id, subject = state.called_off
        work.cancel_for_visitor(item_id, session_id=state.session.pk, subject=subject)


def _earlier(named: str | None) -> UUID | None:
    """The finished work that the planner goes on with (spec 5.1 step 12, deepening)."""
    return parse_id(named) or _NOWHERE if named else None
