"""Does a conversation go on after a restart as if there had been none? (spec 5.1.3) Asked of a process that is new."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests import nursery
from tests.factories.identity import MARIA, converse, make_identity_desk
from tests.factories.sessions import make_session, say

# What a new process knows when it takes up the message that waits: all of it from rows.
TAKE_UP = """
import asyncio, json, sys
import django
django.setup()
from uuid import UUID
from apps.sessions import turn
from apps.sessions.steps import context, tools
from kernel.tenancy import tenant_scope

tenant_id, session_id = map(UUID, sys.argv[1:])
with tenant_scope(tenant_id):
    state = turn.open_turn(session_id, consumer="new")
asyncio.run(context.classify(state))
asyncio.run(context.remember_message(state))
asyncio.run(context.enforce_budget(state))
asyncio.run(tools.build(state))
print(json.dumps({
    "level": state.access.grant.level,
    "customer": state.access.subject,
    "taint": state.taint.value,
    "tools": [tool.name for tool in state.tools],
    "said": [[each.sender, each.text, each.taint.value] for each in state.history],
    "turn": state.number,
}))
"""


@pytest.fixture
def session(tenant: Any, tmp_path: Path) -> ChatSession:
    """A visitor who has proved who they are, and has written again when the process died."""
    desk: Deployment = make_identity_desk(tenant, tmp_path)
    found = make_session(desk)
    asyncio.run(converse(found, MARIA))
    say(found, "And now?")
    return found


def taken_up(session: ChatSession) -> dict[str, Any]:
    ran = nursery.run(
        [sys.executable, "-W", "ignore", "-c", TAKE_UP, str(session.tenant_id), str(session.pk)],
        capture_output=True,
        text=True,
        check=True,
    )
    known: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return known


def test_new_process_takes_a_conversation_up_where_it_stood(session: ChatSession) -> None:
    known = taken_up(session)
    (first, answer, *_) = known.pop("said")
    assert first == ["visitor", MARIA, "external"]
    assert answer[0] == "bot"
    assert answer[2] == "external"
    assert known == {
        "level": "verified",
        "customer": "C-1",
        "taint": "auth",
        "tools": ["look", "knowledge_search"],
        "turn": 2,
    }


def test_level_that_ended_while_nobody_ran_is_over_after_a_restart(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(level_expires_at=now() - timedelta(seconds=1))
    known = taken_up(session)
    assert known["level"] == "public"
    assert known["customer"] == ""
    assert known["tools"] == ["knowledge_search"]
