"""What follows when a gate says no: does each of the eight actions do what its author wrote, and does it always end?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.gates.enums import EscalationKind, GateAction, GateCode, GateLane
from apps.gates.schemas import EscalationSpec, GateResult, GateSpec
from apps.memory.models import MemoryItem
from apps.sessions import turn
from apps.sessions.escalations import HANDING_ON, MAX_TRIES, PASSED_ON, POLITE, REPHRASES, Again, follow, stop_for
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import KEPT_OUT
from apps.sessions.state import Stop
from apps.sessions.steps import context
from apps.tenants.models import Deployment
from apps.work import services
from apps.work.models import WorkItem
from apps.work.rules import MAX_WAITING
from kernel.tenancy import in_thread, tenant_scope
from llm.calls import PlannedCall, call_block
from llm.offline import phrases
from tests.factories.identity import converse
from tests.factories.sessions import make_session, say
from tests.factories.skills import acting_tool, install, make_folder, read_tool
from tests.factories.tenants import make_deployment

BAD = "squeamish ossifrage"


def _blocked(on_block: str) -> GateResult:
    return GateResult("cap", GateLane.POLICY, GateAction.BLOCK, GateCode.NOT_ALLOWED, on_block=on_block)


# --- the rule


def test_respond_says_its_message() -> None:
    assert stop_for(_blocked("x"), {"x": EscalationSpec(action="respond", message="No.")}).text == "No."


@pytest.mark.parametrize("message", [None, "", "   "])
def test_respond_without_a_message_is_polite(message: str | None) -> None:
    assert stop_for(_blocked("x"), {"x": EscalationSpec(action="respond", message=message)}).text == POLITE


def test_unknown_escalation_is_a_report_with_a_polite_word() -> None:
    assert stop_for(_blocked("nobody_wrote_this"), {}) == Stop("gate:cap", POLITE, report=True)


def test_transfer_to_queue_asks_for_a_person_in_that_queue() -> None:
    stop = stop_for(_blocked("x"), {"x": EscalationSpec(action="transfer_to_queue", queue="support_l2")})
    assert stop.wants_person is True
    assert stop.queue == "support_l2"
    assert stop.text == HANDING_ON


def test_suppress_and_escalate_speaks_itself_and_hands_on_by_its_fallback() -> None:
    escalations = {
        "x": EscalationSpec(action="suppress_and_escalate", message="One moment.", fallback="human"),
        "human": EscalationSpec(action="transfer_to_queue", queue="second", message="A colleague takes over."),
    }
    stop = stop_for(_blocked("x"), escalations)
    assert stop.text == "One moment."
    assert stop.wants_person is True
    assert stop.queue == "second"


def test_suppress_and_escalate_without_a_fallback_asks_for_a_person() -> None:
    assert stop_for(_blocked("x"), {"x": EscalationSpec(action="suppress_and_escalate")}).wants_person


@pytest.mark.parametrize(
    ("name", "person", "report"),
    [
        ("escalate_human", True, False),
        ("suppress_and_escalate", True, False),
        ("suppress_and_rephrase", True, False),
        ("polite_redirect", False, False),
        ("retry", False, True),
        ("report", False, True),
    ],
)
def test_built_in_escalations_work_without_a_goal(name: str, person: bool, report: bool) -> None:
    stop = stop_for(_blocked(name), {})
    assert stop.wants_person == person
    assert stop.report == report
    assert bool(stop.text)


def test_fallbacks_in_a_circle_end() -> None:
    circle = {"x": EscalationSpec(action="retry", fallback="y"), "y": EscalationSpec(action="retry", fallback="x")}
    assert stop_for(_blocked("x"), circle) == Stop("gate:cap", POLITE, report=True)


def test_circle_of_tasks_that_cannot_be_asked_for_ends() -> None:
    circle = {
        "x": EscalationSpec(action="spawn_task", instruction="x", fallback="y"),
        "y": EscalationSpec(action="spawn_task", instruction="y", fallback="x"),
    }
    last = stop_for(_blocked("x"), circle).otherwise
    assert last is not None
    assert last.otherwise == Stop("gate:cap", POLITE, report=True)


def test_goal_overrides_a_built_in_escalation() -> None:
    mine = {"polite_redirect": EscalationSpec(action="respond", message="Let's talk about insurance.")}
    assert stop_for(_blocked("polite_redirect"), mine).text == "Let's talk about insurance."


REPHRASE = {
    "x": EscalationSpec(action="suppress_and_rephrase", instruction="Softly.", max_retries=2, fallback="human"),
    "human": EscalationSpec(action="escalate_human", message="A colleague takes over."),
}


@pytest.mark.parametrize("done", [0, 1])
def test_rephrase_asks_again_with_its_instruction(done: int) -> None:
    assert follow(_blocked("x"), REPHRASE, tried={"x": done}, repeats=REPHRASES) == Again("x", "Softly.")


def test_rephrase_that_did_not_help_falls_back() -> None:
    chosen = follow(_blocked("x"), REPHRASE, tried={"x": 2}, repeats=REPHRASES)
    assert chosen == Stop("gate:cap", "A colleague takes over.", wants_person=True)


def test_rephrase_of_what_the_visitor_said_falls_back_at_once() -> None:
    assert isinstance(follow(_blocked("x"), REPHRASE), Stop)


def test_retry_asks_for_the_very_same() -> None:
    assert follow(_blocked("x"), {"x": EscalationSpec(action="retry")}, repeats=REPHRASES) == Again("x", "")


def test_retry_may_fall_back_to_a_rephrase() -> None:
    chain = {"x": EscalationSpec(action="retry", max_retries=1, fallback="y"), "y": REPHRASE["x"]}
    assert follow(_blocked("x"), chain, tried={"x": 1}, repeats=REPHRASES) == Again("y", "Softly.")


KINDS = st.sampled_from([kind.value for kind in EscalationKind])
NAMES = st.sampled_from(["a", "b", "c", "d", "report", "nobody"])
SPECS = st.builds(
    EscalationSpec,
    action=KINDS,
    queue=st.none() | st.just("q"),
    message=st.none() | st.just("m"),
    max_retries=st.integers(0, 5),
    fallback=st.none() | NAMES,
)


@given(escalations=st.dictionaries(NAMES, SPECS), asked=st.lists(NAMES, min_size=1, max_size=4))
def test_any_escalations_end_in_words_after_few_tries(escalations: dict[str, EscalationSpec], asked: list[str]) -> None:
    """Whatever gates object in turn: no more than `MAX_TRIES` runs, and then the visitor reads something."""
    tried: dict[str, int] = {}
    for run in range(MAX_TRIES + 1):
        chosen = follow(_blocked(asked[run % len(asked)]), escalations, tried=tried, repeats=REPHRASES)
        if isinstance(chosen, Stop):
            break
        tried[chosen.name] = tried.get(chosen.name, 0) + 1
    assert isinstance(chosen, Stop)
    assert chosen.text


def test_gates_that_object_in_turn_have_so_many_tries_together() -> None:
    """Each of them may ask for five more; the model is not asked ten times."""
    patient = {name: EscalationSpec(action="retry", max_retries=5) for name in ("one", "other")}
    tried: dict[str, int] = {}
    while isinstance(
        chosen := follow(
            _blocked("one" if sum(tried.values()) % 2 else "other"), patient, tried=tried, repeats=REPHRASES
        ),
        Again,
    ):
        tried[chosen.name] = tried.get(chosen.name, 0) + 1
    assert sum(tried.values()) == MAX_TRIES


# --- the turn

CALL = call_block(PlannedCall("act", {"order": "$conversation"}))
GOAL = f"""---
id: goal
type: goal
title: Look after orders
schedule: always_on
skills: [test-desk]
access_levels:
  public: {{tools: [knowledge_search, look]}}
escalation:
  human: {{action: escalate_human, message: A colleague takes over.}}
  second: {{action: transfer_to_queue, queue: support_l2, message: The second line takes over.}}
  softly: {{action: suppress_and_rephrase, instruction: Say less., max_retries: 2, fallback: second}}
  hushed: {{action: suppress_and_escalate, message: One moment., fallback: second}}
  polite: {{action: respond, message: Let us talk about orders.}}
  again: {{action: retry, max_retries: 3, fallback: polite}}
  task:
    action: spawn_task
    message: Somebody will look at it.
    fallback: second
    instruction: |
{chr(10).join("      " + line for line in CALL.splitlines())}
  broken: {{action: spawn_task, instruction: There is no call in it., fallback: second}}
---
Be kind.
"""


def _desk(tenant: Any, folder: Path) -> Deployment:
    install(tenant, make_folder(folder, tools=[read_tool(keywords=["track my parcel"]), acting_tool()]))
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        services.install_goal(GOAL, deployment=deployment, requested_by="user:test")
    return deployment


class Talk:
    """What one message came to under a gate that objects to it, or to the answer."""

    def __init__(self, session: ChatSession) -> None:
        self.session = session

    @property
    def said(self) -> list[str]:
        with tenant_scope(self.session.tenant_id):
            rows = ChronicleEntry.objects.filter(session_id=self.session.pk, sender="bot").order_by("seq")
            return list(rows.values_list("text", flat=True))

    def audit(self, event: str) -> list[dict[str, Any]]:
        with tenant_scope(self.session.tenant_id):
            rows = AuditEntry.objects.filter(event=event).order_by("seq").values_list("data", flat=True)
            return [json.loads(data) for data in rows]


async def talk(tenant: Any, folder: Path, on_block: str, *, on: str = "every_user_message", text: str = BAD) -> Talk:
    """One turn; the gate objects to every message or answer of its trigger."""
    deployment = await in_thread(_desk, tenant, folder)
    gate = GateSpec(name="never", on=on, type="regex", config={"pattern": r"(?!)"}, on_block=on_block)
    return Talk(await converse(await in_thread(_gated, deployment, gate), text))


def _gated(deployment: Deployment, gate: GateSpec) -> ChatSession:
    from apps.gates.services import save_gate

    with tenant_scope(deployment.tenant_id):
        save_gate(gate, deployment_id=deployment.pk)
    return make_session(deployment)


async def test_block_is_written_down_with_gate_reason_and_sender(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "polite")
    assert await in_thread(heard.audit, "gate_blocked") == [
        {"gate": "never", "code": "no_match", "first": True, "sender": "visitor"}
    ]


async def test_block_of_an_answer_names_the_bot_as_its_sender(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "polite", on="every_agent_response", text="Hello")
    assert [entry["sender"] for entry in await in_thread(heard.audit, "gate_blocked")] == ["bot"]


async def test_nothing_of_the_text_is_written_down(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "task")
    entries = [await in_thread(heard.audit, event) for event in ("gate_blocked", "gate_escalated", "person_wanted")]
    assert BAD not in str(entries)


async def test_report_tells_the_owner_and_the_visitor_nothing_more(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "report")
    reported = await in_thread(heard.audit, "gate_reported")
    assert await in_thread(lambda: heard.said) == [POLITE]
    assert reported == [{"gate": "never"}]


async def test_words_of_our_own_follow_the_visitors_language(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "report", text="Was ist das für ein Laden, ich bin empört")
    assert await in_thread(lambda: heard.said) == ["Dabei kann ich nicht helfen. Was kann ich sonst für Sie tun?"]


async def test_words_of_the_author_stay_as_they_were_written(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "polite", text="Was ist das für ein Laden, ich bin empört")
    assert await in_thread(lambda: heard.said) == ["Let us talk about orders."]


async def test_escalation_that_nobody_wrote_is_a_report_with_a_warning(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "nobody_wrote_this")
    events = [len(await in_thread(heard.audit, event)) for event in ("gate_reported", "escalation_unknown")]
    assert events == [1, 1]


async def test_person_is_asked_for(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "human")
    assert heard.session.wanted_person_at is not None
    assert await in_thread(lambda: heard.said) == ["A colleague takes over."]


async def test_queue_is_named_where_the_visitor_waits(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "second")
    assert heard.session.wanted_queue == "support_l2"
    assert heard.session.wanted_because == "gate:never"


async def test_answer_is_asked_for_again_until_it_falls_back(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "softly", on="every_agent_response", text="Hello")
    tries = [entry.get("again") for entry in await in_thread(heard.audit, "gate_escalated")]
    assert tries == ["1", "2", None]
    assert heard.session.wanted_queue == "support_l2"


async def test_answer_in_other_words_is_what_the_visitor_reads(tenant: Any, tmp_path: Path) -> None:
    """The model is asked again with the instruction; the same question without one would get the same answer."""
    deployment = await in_thread(_desk, tenant, tmp_path)
    config = {"pattern": rf"\A{re.escape(phrases.MAY_NOT_SAY)}"}
    gate = GateSpec(name="careful", on="every_agent_response", type="regex", config=config, on_block="softly")
    heard = Talk(await converse(await in_thread(_gated, deployment, gate), "Hello"))
    (said,) = await in_thread(lambda: heard.said)
    assert said.startswith(phrases.MAY_NOT_SAY)
    assert heard.session.wanted_person_at is None


async def test_suppressed_answer_is_never_said(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "hushed", on="every_agent_response", text="Hello")
    assert await in_thread(lambda: heard.said) == ["One moment."]


async def test_check_that_fails_is_made_again_as_often_as_written(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "again")
    assert len(await in_thread(heard.audit, "gate_blocked")) == 4


async def test_retry_that_did_not_help_falls_back(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "again")
    assert await in_thread(lambda: heard.said) == ["Let us talk about orders."]


async def test_message_that_a_gate_kept_out_is_read_by_no_later_turn_either(tenant: Any, tmp_path: Path) -> None:
    deployment = await in_thread(_desk, tenant, tmp_path)
    gate = GateSpec(name="kind", on="every_user_message", type="custom_check", config={"blocked_keywords": [BAD]})
    session = await converse(await in_thread(_gated, deployment, gate), BAD)
    state = await in_thread(_begun, session, "And now?")
    await context.remember_message(state)
    assert [said.text for said in state.history] == [KEPT_OUT, POLITE]


async def test_message_that_a_gate_reworded_stays_reworded_in_later_turns_and_in_memory(
    tenant: Any, tmp_path: Path
) -> None:
    deployment = await in_thread(_desk, tenant, tmp_path)
    gate = GateSpec(name="pii", on="every_user_message", provider="custom", check="pii", config={"on_fail": "fix"})
    session = await converse(await in_thread(_gated, deployment, gate), "I am at ann@example.com")
    state = await in_thread(_begun, session, "And now?")
    await context.remember_message(state)
    with_memory = await in_thread(_remembered, session)
    assert "example.com" not in str([said.text for said in state.history]) + str(with_memory)
    assert with_memory
    assert state.history[0].text.startswith("I am at")


def _remembered(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        return list(MemoryItem.objects.filter(session_id=session.pk).values_list("content", flat=True))


def _begun(session: ChatSession, text: str) -> Any:
    say(session, text)
    with tenant_scope(session.tenant_id):
        return turn.open_turn(session.pk, consumer="test")


def _waiting(session: ChatSession) -> list[tuple[str, bool, str]]:
    with tenant_scope(session.tenant_id):
        items = list(WorkItem.objects.filter(session_id=session.pk))
        return [(item.status, Card.objects.get(subject_id=item.pk).is_open, item.requested_by[:5]) for item in items]


async def test_task_waits_for_its_approval(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "task")
    assert await in_thread(_waiting, heard.session) == [("pending", True, "goal:")]


async def test_task_is_about_this_conversation_and_nothing_the_visitor_said(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "task")

    def calls() -> list[Any]:
        with tenant_scope(tenant):
            return [call.args for call in WorkItem.objects.get(session_id=heard.session.pk).spec.calls]

    assert await in_thread(calls) == [{"order": str(heard.session.pk)}]


async def test_task_is_asked_for_once_however_often_the_gate_objects(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "task")
    await converse(heard.session, BAD)
    assert len(await in_thread(_waiting, heard.session)) == 1
    assert await in_thread(lambda: heard.said) == ["Somebody will look at it."] * 2


def _beside(session: ChatSession) -> ChatSession:
    """Another conversation with the same bot."""
    with tenant_scope(session.tenant_id):
        deployment = Deployment.objects.get(pk=session.deployment_id)
    return make_session(deployment)


async def test_strangers_who_open_conversations_cannot_bury_who_approves(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "task")
    sessions = [await in_thread(_beside, heard.session) for _ in range(MAX_WAITING)]
    last = [await converse(session, BAD) for session in sessions][-1]
    assert await in_thread(_waiting, last) == []
    assert last.wanted_queue == "support_l2"


async def test_task_that_cannot_be_asked_for_falls_back(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "broken")
    assert await in_thread(_waiting, heard.session) == []
    assert heard.session.wanted_queue == "support_l2"


async def test_task_without_words_of_its_own_says_that_it_was_passed_on(tenant: Any) -> None:
    assert stop_for(_blocked("x"), {"x": EscalationSpec(action="spawn_task", instruction="x")}).text == PASSED_ON


async def test_tool_that_a_gate_refuses_leads_to_its_escalation(tenant: Any, tmp_path: Path) -> None:
    heard = await talk(tenant, tmp_path, "second", on="on_tool_call", text="Please track my parcel")
    assert await in_thread(lambda: heard.said) == ["The second line takes over."]
    assert heard.session.wanted_queue == "support_l2"
