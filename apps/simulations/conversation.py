"""Hold a conversation as a visitor would: each message takes the real path, is accepted, answered and recorded.

The turn runs in the calling process, which must have the rights of a web process. Sessions are marked as tests. Called
for scenarios in an isolated copy, and by `python -m evals` on a database of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from apps.approvals.models import Card
from apps.audit.enums import AuditEvent
from apps.bus.deliveries import keep_lease_alive
from apps.guard.enums import Intent
from apps.guard.models import SpendEntry, ToolCall
from apps.knowledge.models import DocumentVersion
from apps.sessions import turn
from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.services import accept_message, start_session
from apps.sessions.state import TurnState
from apps.simulations.schemas import Cite, Line, Said
from apps.tenants.models import Deployment
from apps.work.models import WorkItem
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.language_detection import detect_language

CONSUMER = "simulation"
_SECTION = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What really came of one message, in the words of `Line`."""

    route: str
    tools: list[str]
    cites: list[Cite]
    level: str
    escalation: str
    work: str
    person: bool
    queue: str
    said: str
    answered_by: str


@dataclass
class Played:
    """One conversation: what was said, what was missed in it, a line each, and what it cost in US dollars.

    `visitor_run_id` is the guarded run of the model that plays the visitor, if one does.
    """

    session_id: UUID
    outcomes: list[Outcome] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    cost_usd: Decimal = Decimal(0)
    visitor_run_id: UUID | None = None


async def begin(deployment: Deployment) -> Played:
    started = await in_thread(partial(start_session, deployment, is_test=True))
    return Played(started.session_id)


async def exchange(deployment: Deployment, played: Played, line: Line, *, judge: bool = True) -> None:
    """Say one line, note what came of it, and `judge` it by what the line expects."""
    before = played.outcomes[-1].said if played.outcomes else ""
    outcome = await say(deployment, played.session_id, line.say)
    played.outcomes.append(outcome)
    number = len(played.outcomes)
    if judge:
        played.misses += [f"turn {number}: {miss}" for miss in misses(line, outcome, before=before)]
    played.said.append(
        Said(
            visitor=line.say,
            bot=outcome.said,
            route=outcome.route,
            tools=outcome.tools,
            level=outcome.level,
            work=outcome.work,
            answered_by=outcome.answered_by,
            cites=outcome.cites,
        )
    )


async def play(deployment: Deployment, lines: Sequence[Line]) -> Played:
    """Say everything in order, in a conversation of its own."""
    played = await begin(deployment)
    for line in lines:
        await exchange(deployment, played, line)
    played.cost_usd = await in_scope(deployment.tenant_id, cost_of, played.session_id)
    return played


def cost_of(session_id: UUID) -> Decimal:
    """What the conversation's calls were charged, in US dollars."""
    return cost_of_run(ChatSession.objects.values_list("run_id", flat=True).get(pk=session_id))


def cost_of_run(run_id: UUID | None) -> Decimal:
    """What the calls of a guarded run were charged, in US dollars; nothing without a run."""
    if run_id is None:
        return Decimal(0)
    charged = SpendEntry.objects.filter(call__run_id=run_id).aggregate(total=Sum("amount"))["total"]
    return Decimal(charged or 0)


def misses(expected: Line, outcome: Outcome, *, before: str = "") -> list[str]:
    """What was expected and did not come, one line each; `before`: what the bot said last."""
    exact = ("route", "tools", "level", "escalation", "work", "person", "queue")
    found = [
        f"{name} is {getattr(outcome, name)!r}, not {wanted!r}"
        for name in exact
        if (wanted := getattr(expected, name)) is not None and wanted != getattr(outcome, name)
    ]
    if expected.cites is not None and (expected.cites == []) != (outcome.cites == []):
        found.append(f"cites {_told(outcome.cites)}, not {_told(expected.cites)}")
    found += [f"does not cite {_told([cite])}" for cite in expected.cites or () if cite not in outcome.cites]
    found += [f"does not say {fact!r}: {outcome.said!r}" for fact in expected.says if fact not in outcome.said]
    found += [f"says {word!r}" for word in expected.never if word.lower() in outcome.said.lower()]
    if expected.speaks is not None and (spoken := detect_language([outcome.said])) != expected.speaks:
        found.append(f"speaks {spoken!r}, not {expected.speaks!r}: {outcome.said!r}")
    if not outcome.said:
        found.append("says nothing")
    elif outcome.said == before:
        found.append(f"repeats itself: {outcome.said!r}")
    return found


def _told(cites: list[Cite]) -> str:
    return ", ".join(f"{cite.document} {cite.section}" for cite in cites) or "nothing"


async def say(deployment: Deployment, session_id: UUID, text: str) -> Outcome:
    """One message in a conversation, and what came of it."""
    tenant_id = deployment.tenant_id
    before = await in_scope(tenant_id, _reached, session_id)
    state = await in_thread(_accept_and_open, tenant_id, session_id, text)
    async with keep_lease_alive(tenant_id, state.lease, settings.TURN_LEASE_SECONDS):
        await turn.run(state)
    return await in_scope(tenant_id, _outcome, state, session_id, before)


def _accept_and_open(tenant_id: UUID, session_id: UUID, text: str) -> TurnState:
    """Accept the message and lease it in one transaction, so that no web process takes its turn. The first scope writes
    what it gathered when it ends."""
    with transaction.atomic():
        with tenant_scope(tenant_id):
            accept_message(session_id, text=text)
        with tenant_scope(tenant_id):
            state = turn.open_turn(session_id, consumer=CONSUMER)
    if state is None:
        raise RuntimeError("the message's turn was taken by another process")
    return state


def _reached(session_id: UUID) -> tuple[int, int]:
    """How far the conversation has come, and its calls."""
    session = ChatSession.objects.get(pk=session_id)
    last = ToolCall.objects.filter(run_id=session.run_id).order_by("-seq").values_list("seq", flat=True).first()
    return int(session.seq), last or 0


def _outcome(state: TurnState, session_id: UUID, before: tuple[int, int]) -> Outcome:
    session = ChatSession.objects.get(pk=session_id)
    said = list(
        ChronicleEntry.objects.filter(session_id=session_id, seq__gt=before[0], sender=Sender.BOT).order_by("seq")
    )
    answer = next((entry for entry in said if entry.kind == "message"), None)
    cited = answer.payload.get("citations", ()) if answer else ()
    return Outcome(
        route="stopped" if state.stop else state.route,
        tools=_tools(state, after=before[1]),
        cites=[_place(one) for one in cited if not one.get("is_file")],
        level=session.level,
        escalation=_escalation(state),
        work=_work(state, session_id),
        person=session.wanted_person_at is not None,
        queue=session.wanted_queue,
        said="\n".join(entry.text for entry in said),
        answered_by=state.model_name,
    )


def _tools(state: TurnState, *, after: int) -> list[str]:
    """The calls of this turn that passed the guard, in order."""
    calls = ToolCall.objects.filter(run_id=state.run.run_id, seq__gt=after).exclude(intent=Intent.CONVERSE)
    return list(calls.order_by("seq").values_list("tool", flat=True))


def _escalation(state: TurnState) -> str:
    """The action of the last escalation that was carried out."""
    done = [data["action"] for event, data in state.audit if event == AuditEvent.GATE_ESCALATED]
    return str(done[-1]) if done else "none"


def _work(state: TurnState, session_id: UUID) -> str:
    item = WorkItem.objects.filter(session_id=session_id, trace_id=state.lease.message.trace_id).first()
    if item is None:
        wanted = state.response is not None and state.response.plan_action is not None
        return "refused" if wanted and state.stop is None else "none"
    return "card" if Card.objects.filter(subject_id=item.pk).exists() else "dispatched"


def _place(cited: dict[str, Any]) -> Cite:
    """The document and the numbered section in which a citation stands, read from what is stored."""
    version = DocumentVersion.objects.select_related("document").get(pk=cited["version_id"])
    sections = _SECTION.findall(version.text.encode()[: cited["end"]].decode(errors="ignore"))
    return Cite(document=version.document.title, section=sections[-1] if sections else "")
