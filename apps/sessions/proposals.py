"""What becomes of a plan that the bot proposed? Handed to the work room; the visitor is told what it waits for or why
not.

Runs inside the turn's closing transaction, so that the answer and its promise are recorded together (spec 5.1.2, step
12).
"""

from __future__ import annotations

from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.state import TurnState
from apps.work import services as work
from kernel.clock import now
from kernel.llm.enums import PlanActionType
from kernel.llm.schemas import PlanAction
from kernel.taint import Taint

REFUSED = "I cannot do this: {reason}"


def propose(state: TurnState, action: PlanAction) -> None:
    """A proposed plan goes to work, with what the visitor's level allows at this moment; anything else a planner may
    ask for waits for the issue that builds it."""
    if action.action not in (PlanActionType.PROPOSE, PlanActionType.REVISE) or not action.plan_markdown:
        return
    access = state.access.at(now())
    proposal = work.propose(
        deployment=state.session.deployment,
        session_id=state.session.pk,
        plan_markdown=action.plan_markdown,
        access=access.allowed_tools(),
        subject=access.subject,
        gates=state.policy.gates,
        trace_id=state.lease.message.trace_id,
    )
    if proposal.outcome == "refused":
        text = REFUSED.format(reason=proposal.reason)
        chronicle.append(
            state.session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text, taint=Taint.AUTH, turn=state.number
        )
