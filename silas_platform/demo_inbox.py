"""Seed the demo's inbox: labels, canned replies, and a few conversations with the real bot and an agent.

Each is created once, so that later changes of staff stay. Called by `silas_platform.demo` only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.inbox import handoff
from apps.inbox import services as desk
from apps.inbox.labels_and_replies import save_label, save_reply
from apps.inbox.models import CannedReply, Label
from apps.sessions import turn
from apps.sessions.models import ChatSession
from apps.sessions.services import accept_message, start_session
from apps.tenants.models import Deployment, User
from kernel.tenancy import in_scope, tenant_scope

ACTOR = "seed_demo"


def labels_and_replies(described: Mapping[str, Any], agent: User) -> None:
    """Create labels and canned replies; inside a scope."""
    if not Label.objects.exists():
        for name, colour in described["labels"].items():
            save_label(agent, name=name, colour=colour)
    if not CannedReply.objects.exists():
        for name, text in described["replies"].items():
            save_reply(agent, name=name, text=text)


def conversations(described: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    """Hold the conversations, unless there are any; outside any scope, because the bot answers as for a visitor."""
    with tenant_scope(deployment.tenant_id):
        if ChatSession.objects.exists():
            return
    for talk in described["conversations"]:
        _hold_conversation(talk, deployment, agent)


def _hold_conversation(talk: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    session_id = start_session(deployment, locale="en").session_id
    for line in talk["said"]:
        asyncio.run(_send_and_answer(deployment.tenant_id, session_id, line))
    with tenant_scope(deployment.tenant_id):
        for name in talk["labels"]:
            desk.mark(session_id, agent, label_id=Label.objects.get(name=name).pk, on=True)
        if talk.get("note"):
            desk.note(session_id, agent, talk["note"])
        if talk.get("reply"):
            handoff.take_over(session_id, agent)
            handoff.reply(session_id, agent, talk["reply"])
        if talk.get("resolved"):
            desk.resolve(session_id, agent)


async def _send_and_answer(tenant_id: UUID, session_id: UUID, text: str) -> None:
    await in_scope(tenant_id, accept_message, session_id, text=text)
    state = await in_scope(tenant_id, turn.open_turn, session_id, consumer=ACTOR)
    if state is not None:
        await turn.run(state)
