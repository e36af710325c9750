"""An installed skill in a visitor's turn, whole: told of, chosen, planned, approved, carried out, proved.

The models are a local server that speaks like a provider, so that what each was told is read off the wire.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

from apps.sessions import chronicle, turn
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, Turn
from apps.sessions.prompt_trace import last_attempt, seen_in
from apps.sessions.state import TurnState
from apps.skills import installation, roles
from apps.skills.models import SkillVersion
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say, served
from tests.factories.skills import acting_tool, install, make_folder, plain_folder, read_tool, save_record
from tests.factories.work import ARGS, GOAL, NOTE, NOTED, Desk, adopt, note, plan
from tests.fakes.openai_server import FakeOpenAI, Reply, final, serving_in_thread

MODEL = "openai-chat:gpt-4o-mini"
SKILLED = GOAL.replace("[test-desk]", "[test-desk, word-count, house-style]").replace(
    "[look]", "[look, word_count_count]"
)
TO_PLANNER = final(
    {
        "route": "planner",
        "reason": "acts",
        "interaction_register": "status",
        "interaction_mode": "act_and_report",
        "context_profile": "conversation",
    }
)
PLANNED = final({"message": "I have prepared it.", "plan_action": {"action": "propose", "plan_markdown": plan(note())}})
CALLS = Reply(calls=(("act", json.dumps({"order": "H-1", "note": 50})),))
DONE = final({"summary": "It is noted."})


def style_folder(root: Path) -> Path:
    folder = root / "house-style"
    folder.mkdir(parents=True)
    front = "name: house-style\ndescription: Use when anything is written for a customer.\nactivation: background"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\n\nSay please.\n")
    return folder


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    """A goal with a desk, a skill that has to be named, and one that is there for its instructions."""
    tools = [read_tool(), acting_tool(args=ARGS)]
    install(tenant, make_folder(tmp_path, tools=tools, files={"scripts/act.py": NOTE, "checks/done.py": NOTED}))
    counted = {"text": {"type": "string", "passed": "position"}}
    install(tenant, plain_folder(tmp_path, "print(1)", args=counted, activation="manual"))
    install(tenant, style_folder(tmp_path))
    save_record(tenant, "orders", "H-1", subject="C-1", total=120)
    desk = adopt(tenant, SKILLED)
    with tenant_scope(tenant):
        desk.deployment.model_names = dict.fromkeys(("proxy", "planner", "executor"), MODEL)
        desk.deployment.environment_keys = True
        desk.deployment.save(update_fields=["model_names", "environment_keys"])
    return desk


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    with serving_in_thread([TO_PLANNER, PLANNED, CALLS, DONE]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        yield fake


def visiting(desk: Desk, *lines: str, customer: str = "C-1") -> ChatSession:
    """A conversation of a verified customer who says this."""
    session = make_session(desk.deployment)
    with tenant_scope(desk.tenant):
        ends = now() + timedelta(hours=1)
        known = {"level": "verified", "customer": customer, "level_expires_at": ends}
        ChatSession.objects.filter(pk=session.pk).update(**known)
    for line in lines:
        say(session, line)
    return session


def told(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"], ensure_ascii=False).replace("\\n", "\n")


def item_of(desk: Desk, session: ChatSession) -> WorkItem:
    with tenant_scope(desk.tenant):
        found: WorkItem = WorkItem.objects.get(session_id=session.pk)
        return found


def switched_off(desk: Desk, name: str) -> None:
    with tenant_scope(desk.tenant):
        assert installation.disable(name) == 1


def opened(desk: Desk, *lines: str) -> TurnState:
    session = visiting(desk, *lines)
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


def test_turn_that_uses_an_installed_skill_end_to_end(desk: Desk, provider: FakeOpenAI, approver: Any) -> None:
    session = visiting(desk, "Please note 50 on order H-1.")
    asyncio.run(served(session))
    waiting = item_of(desk, session)
    assert waiting.status == WorkItemStatus.PENDING
    assert desk.order().revision == 1
    desk.decide(waiting, approver)
    desk.work()
    done = item_of(desk, session)
    assert done.status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 50
    assert desk.order().revision == 2
    proxy, planner, executor = (told(request) for request in provider.requests[:3])
    assert "- test-desk: Use when a test wants to look something up or change it." in proxy
    assert "Do it." not in proxy
    assert "house-style" not in proxy
    assert "word-count" not in proxy
    assert "--- skill | test-desk | instructions ---\n# Test desk\n\nDo it.\n" in planner
    assert "Say please." in planner
    assert "word-count" not in planner
    assert "scripts/act.py" not in planner
    assert "- act: scripts/act.py" in executor
    assert "Say please." in executor
    assert "word-count" not in executor
    seen_by_the_page(session)


def seen_by_the_page(session: ChatSession) -> None:
    """Staff who look at the turn see what was told of the skills."""
    with tenant_scope(session.tenant_id):
        assert Turn.objects.filter(session_id=session.pk).count() == 1
        window = seen_in(last_attempt(session.pk, number=1))
    assert window is not None
    words = {each.source: each.text for zone in window.zones for each in zone.items if each.place == "skill"}
    assert words == {"test-desk": "# Test desk\n\nDo it.", "house-style": "Say please."}


# --- activation


def test_skill_that_nobody_named_is_in_no_level(desk: Desk) -> None:
    state = opened(desk, "How many words are these?")
    assert "word_count_count" not in {tool.name for tool in state.policy.tools}
    assert not any("word_count_count" in level.tools for level in state.policy.levels.values())


def test_skill_that_was_named_stays_for_the_conversation(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        desk.deployment.model_names = {}
        desk.deployment.save(update_fields=["model_names"])
    session = visiting(desk, "Use word-count please.")
    asyncio.run(served(session))
    say(session, "The text is: two words")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    assert "word_count_count" in {tool.name for tool in state.policy.tools}


def test_name_that_the_bot_said_brings_nothing_in(desk: Desk) -> None:
    session = visiting(desk)
    with tenant_scope(desk.tenant):
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text="I have word-count.", payload={})
    say(session, "What can you do?")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    assert [said.text for said in state.recent] == ["I have word-count."]
    assert all(skill.name != "word-count" for skill in state.policy.known)


# --- what was switched off


def test_conversation_goes_on_without_a_skill_that_was_switched_off(desk: Desk) -> None:
    switched_off(desk, "test-desk")
    state = opened(desk, "Use word-count please.")
    assert [tool.name for tool in state.policy.tools] == ["word_count_count"]


def test_plan_with_a_skill_that_was_switched_off_is_refused(desk: Desk) -> None:
    switched_off(desk, "test-desk")
    assert desk.propose().code == "tool_not_granted"


# --- what a child item has


def test_task_of_a_plan_has_what_it_calls_and_the_instructions_of_its_goal(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id).spec.skills
        refs = [roles.queries.pinned_ref(each) for each in SkillVersion.objects.exclude(name="word-count")]
    assert set(desk.waiting().spec.skills) == set(refs)
    assert set(refs) < set(goal)


def test_plan_that_names_more_skills_gets_none_of_them(desk: Desk) -> None:
    asked = desk.propose(plan_markdown=plan(note(), front="skills: [word-count, test-desk, coding]\n"))
    assert asked.work_item_id is not None
    names = {ref.partition("@")[0] for ref in desk.item(asked.work_item_id).spec.skills}
    assert names == {"test-desk", "house-style"}


def test_task_under_a_standing_approval_has_what_its_goal_hands_down(desk: Desk, approver: Any) -> None:
    desk.allow_standing(approver)
    proposal = desk.propose(note(10))
    assert proposal.outcome == "dispatched"
    assert proposal.work_item_id is not None
    names = {ref.partition("@")[0] for ref in desk.item(proposal.work_item_id).spec.skills}
    assert names == {"test-desk", "house-style"}
