"""What lies in the demo's inbox? Labels, canned replies, and a few conversations that the bot and an agent really had.

Each once: what staff have renamed, deleted or answered since stays so. Called by `silas_platform.demo` only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.sessions import handoff, turn
from apps.sessions.inbox import services as desk
from apps.sessions.inbox.labels_and_replies import save_label, save_reply
from apps.sessions.models import CannedReply, ChatSession, Label
from apps.sessions.services import accept_message, start_session
from apps.tenants.models import Deployment, User
from kernel.tenancy import in_scope, tenant_scope

ACTOR = "seed_demo"


def words(described: Mapping[str, Any], agent: User) -> None:
    """Labels, and replies that are ready. Inside a scope."""
    if not Label.objects.exists():
        for name, colour in described["labels"].items():
            save_label(agent, name=name, colour=colour)
    if not CannedReply.objects.exists():
        for name, text in described["replies"].items():
            save_reply(agent, name=name, text=text)


def conversations(described: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    """Outside of any scope: the bot answers as it would a visitor."""
    with tenant_scope(deployment.tenant_id):
        if ChatSession.objects.exists():
            return
    for talk in described["conversations"]:
        _held(talk, deployment, agent)


def _held(talk: Mapping[str, Any], deployment: Deployment, agent: User) -> None:
    session_id = start_session(deployment, locale="en").session_id
    for line in talk["said"]:
        asyncio.run(_answered(deployment.tenant_id, session_id, line))
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


async def _answered(tenant_id: UUID, session_id: UUID, text: str) -> None:
    await in_scope(tenant_id, accept_message, session_id, text=text)
    state = await in_scope(tenant_id, turn.open_turn, session_id, consumer=ACTOR)
    if state is not None:
        await turn.run(state)
