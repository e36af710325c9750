"""What does a block of the bot's start for people to decide? A task from what the goal's author wrote (spec 5.1.1).

`spawn_task`: "create a fix task from the failure context". The plan is the author's; only codes and ids are filled in,
never a word of the visitor's or the model's. It waits for a yes like any other plan: no standing yes covers it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.gates.schemas import GateSpec
from apps.tenants.models import Deployment
from apps.work import rules
from apps.work.goal_templates import FAILED_CHECKS
from apps.work.provenance import trace_to
from apps.work.queries import active_goal, pending_of
from apps.work.schemas import Proposal
from apps.work.services import screening
from apps.work.services.proposals import propose
from kernel.provenance import Origin, Traced

# What an author may write into the plan: `"$gate"` and its like.
PLACES = ("gate", "code", "conversation")


def propose_fix(
    template: str,
    *,
    deployment: Deployment,
    session_id: UUID,
    about: Mapping[str, str],
    subject: str,
    gates: Sequence[GateSpec],
    trace_id: str,
) -> Proposal:
    """Put the task of `template`, or of the goal's own failure context, before a person; `about` fills its places.

    Inside the caller's transaction, which holds the customer's lock. Refused like any plan: no call in it, a tool that
    the goal has not, exactly this waits already; and when so many of the goal's tasks wait that strangers who open
    conversations would bury who approves."""
    goal = active_goal(deployment)
    asked_by = f"goal:{goal.pk}" if goal else "goal"
    if len(pending_of(asked_by)) >= rules.MAX_WAITING:
        return Proposal("refused", code="too_much_waiting")
    written = template or (goal.spec.failure_context if goal else "") or ""
    return propose(
        deployment=deployment,
        session_id=session_id,
        plan_markdown=_plan(fill_template(written, about)),
        access=frozenset(screening.tools_of(goal)),
        subject=subject,
        gates=gates,
        trace_id=trace_id,
        requested_by=asked_by,
        always_asks=True,
        tracing=trace_to(Traced(Origin.AUTHOR)),
    )


def fill_template(template: str, about: Mapping[str, str]) -> str:
    """The template with gate, code and conversation in their places; anything else stays as it was written."""
    known = {f"${name}": json.dumps(about.get(name, ""))[1:-1] for name in PLACES}
    known[FAILED_CHECKS] = f"{about.get('gate', '')} ({about.get('code', '')})"
    for place, value in known.items():
        template = template.replace(place, value)
    return template


def _plan(body: str) -> str:
    return f"---\nid: fix\ntype: task\ntitle: Look into it\n---\n\n{body}"
