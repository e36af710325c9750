"""Propose the fix task that a block of the bot starts, from the template that the goal's author wrote (spec 5.1.1).

`spawn_task`: "create a fix task from the failure context". Only codes and ids are filled in, never a word of the
visitor's or the model's. It needs approval like any plan, and no standing approval covers it.
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

# Placeholders that an author may use: `"$gate"` and so on.
PLACES = ("gate", "code", "conversation")
_FRONT_MATTER = "---\nid: fix\ntype: task\ntitle: Look into it\n---\n\n"


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
    """Put the task of `template`, or of the goal's own failure context, before a person; `about` fills its
    placeholders.

    Inside the caller's transaction, which holds the customer's lock. Refused like any plan (no call in it, a tool that
    the goal lacks, the same task waits already), and when too many of the goal's tasks wait: visitors could otherwise
    flood the review queue.
    """
    goal = active_goal(deployment)
    requested_by = f"goal:{goal.pk}" if goal else "goal"
    if len(pending_of(requested_by)) >= rules.MAX_WAITING:
        return Proposal("refused", code="too_much_waiting")
    body = template or (goal.spec.failure_context if goal else "") or ""
    return propose(
        deployment=deployment,
        session_id=session_id,
        plan_markdown=f"{_FRONT_MATTER}{fill_template(body, about)}",
        access=frozenset(screening.tools_of(goal)),
        subject=subject,
        gates=gates,
        trace_id=trace_id,
        requested_by=requested_by,
        always_asks=True,
        tracing=trace_to(Traced(Origin.AUTHOR)),
    )


def fill_template(template: str, about: Mapping[str, str]) -> str:
    """Fill in gate, code and conversation; anything else stays as written."""
    # Escaped as JSON, because placeholders stand inside the strings of a call.
    replacements = {f"${name}": json.dumps(about.get(name, ""))[1:-1] for name in PLACES}
    replacements[FAILED_CHECKS] = f"{about.get('gate', '')} ({about.get('code', '')})"
    for place, value in replacements.items():
        template = template.replace(place, value)
    return template
