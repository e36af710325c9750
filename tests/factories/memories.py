"""Memories for tests, and turns whose model asks something of memory."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from apps.access.models import AccessLevel
from apps.access.rules import Grant
from apps.memory import memories
from apps.memory.enums import ScopeKind, SourceKind, Tier
from apps.memory.models import MemoryItem
from apps.memory.recall import recall
from apps.memory.schemas import Note, Scope
from apps.sessions import turn
from apps.sessions.models import ChatSession
from apps.sessions.state import TurnState
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm import embedding
from llm.enums import MemoryType
from llm.schemas import AgentResponse
from tests.factories.sessions import say as say_in_session


def conversation(session_id: UUID | None = None) -> Scope:
    return Scope(ScopeKind.CONVERSATION, str(session_id or uuid4()))


def customer(subject: str) -> Scope:
    return Scope(ScopeKind.CUSTOMER, subject)


def note(scope: Scope, content: str, **fields: Any) -> Note:
    """A model's wish to remember something, unless told otherwise."""
    usual = {"source": SourceKind.MEMORY_OP, "tier": Tier.ACTIVE, "reference": memories.request_reference(content)}
    return Note(scope, content, **{**usual, **fields})


def remember(tenant: Any, scope: Scope, content: str, **fields: Any) -> MemoryItem:
    (ready,) = memories.prepare([note(scope, content, **fields)])
    with tenant_scope(tenant):
        memories.keep([ready])
    with tenant_scope(tenant):
        kept: MemoryItem = MemoryItem.objects.get(scope=str(scope), reference=ready.reference)
    return kept


def say(tenant: Any, scope: Scope, text: str, *, days_ago: float = 0, **fields: Any) -> MemoryItem:
    """A memory of a model, without an embedding, from a conversation of its own so many days ago."""
    moment = now() - timedelta(days=days_ago)
    usual = {
        "memory_type": MemoryType.EPISODE,
        "tier": Tier.ACTIVE,
        "taint": Taint.EXTERNAL,
        "source_kind": SourceKind.MEMORY_OP,
        "reference": f"r:{uuid4()}",
        "session_id": uuid4(),
        "created_at": moment,
        "updated_at": moment,
        "valid_until": now() + timedelta(days=90),
    }
    with tenant_scope(tenant):
        row: MemoryItem = MemoryItem.objects.create(scope=str(scope), content=text, **{**usual, **fields})
    return row


def say_often(tenant: Any, scope: Scope, text: str, times: int, **fields: Any) -> list[MemoryItem]:
    """The same in this many conversations within ten days, the oldest first."""
    return [
        say(tenant, scope, text, days_ago=10 * (times - 1 - number) / (times - 1), **fields) for number in range(times)
    ]


def recalled(tenant: Any, scopes: list[Scope], question: str, **how: Any) -> list[str]:
    """The words that come back for a question."""
    with tenant_scope(tenant):
        found = recall(scopes, question, **{"vector": embedding.embed(question), "k": 10, **how})
    return [memory.text for memory in found]


def kept_in(tenant: Any, scope: Scope) -> list[str]:
    """All that a scope holds, oldest first."""
    with tenant_scope(tenant):
        return list(
            MemoryItem.objects.filter(scope=str(scope)).order_by("created_at").values_list("content", flat=True)
        )


async def told(session: ChatSession, text: str, *, grant: Grant | None = None, **answer: Any) -> TurnState:
    """A whole turn in which the model answered with these fields (`memory_ops`, `memory_queries`, `message`), for
    somebody with this grant."""
    await in_thread(say_in_session, session, text)
    if grant is not None:
        await in_scope(session.tenant_id, give, session, grant)
    state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
    assert state is not None
    await before_the_end(state, **answer)
    await in_scope(session.tenant_id, turn.close_turn, state)
    return state


def give(session: ChatSession, grant: Grant) -> None:
    """Let the conversation's row say that this was earned, at a deployment that has the level."""
    AccessLevel.objects.get_or_create(
        deployment=session.deployment, name="verified", order=1, requires=["identity"], tenant_id=session.tenant_id
    )
    ends = {gate: None if end is None else end.isoformat() for gate, end in grant.verified.items()}
    ChatSession.objects.filter(pk=session.pk).update(
        level=grant.level,
        level_expires_at=grant.expires_at,
        verified_gates=ends,
        customer=grant.customer,
        customer_name=grant.customer_name,
    )


def verified(subject: str, *, seconds: int = 3600) -> Grant:
    until = now() + timedelta(seconds=seconds)
    return Grant("verified", until, verified={"identity": None}, customer=subject, customer_name="Somebody")


async def before_the_end(state: TurnState, **answer: Any) -> None:
    """All slow steps of an opened turn, with this answer in the place of the model's."""
    for step in turn.BETWEEN:
        if step.name == "answer":
            state.response = AgentResponse(**{"message": "I see.", **answer})
        else:
            state.stop = await step.run(state)
        if state.stop:
            return
