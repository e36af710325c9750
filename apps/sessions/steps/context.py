"""Steps 2 to 5: trust of the message, history, retrieval and memory, and the token budget of the window.

What leaves the window is decided by `llm.context.rules` on what `window` lays out, or by a scorer model where
one is configured and the rules are not enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from apps.access.levels import KNOWLEDGE_TOOL
from apps.gates.content import DOCUMENT, FILE, MEMORY, WRITTEN_AFTER, ContentMark, check_content
from apps.guard import services as guard
from apps.guard.schemas import RunRef
from apps.knowledge.provider_vectors import QuestionVector, embed_question
from apps.knowledge.queries import join_neighbours, search, search_text
from apps.knowledge.reranking import candidates, rerank
from apps.memory import memories
from apps.memory.enums import Purpose, ScopeKind, Tier
from apps.memory.recall import confirmed_preferences, recall, recall_for
from apps.memory.schemas import Note
from apps.sessions import window, window_scoring
from apps.sessions.queries import Said
from apps.sessions.registry import read_attachments
from apps.sessions.state import Stop, TurnState
from apps.sessions.steps.memory import left_the_window, said_since_the_last_answer, scopes_of
from kernel.errors import SilasError
from kernel.language import gettext_lazy
from kernel.taint import Taint
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm import embedding
from llm.briefing import HistoryMessage, RecalledMemory
from llm.context import subscriptions
from llm.context.budget import count_tokens
from llm.context.items import FRAME_TOKENS
from llm.context.subscriptions import Subscription
from llm.enums import MemoryQueryStrategy

PASSAGES = 6
_WITH_FILES = 4  # files that came with the last messages are read again, so that a question about them can follow
TOO_MUCH = gettext_lazy("I can't answer right now. A colleague will take a look.")


async def classify(state: TurnState) -> Stop | None:
    """Step 2. What a member signed is as trusted as it was when it came (`signing`); a visitor is `auth` while an
    identity gate's level stands, else `external`. Levels do not bind the owner's own words (spec 5.6)."""
    if state.message.taint == Taint.OWNER:
        state.taint = Taint.OWNER
        state.access = state.access.for_owner({*(tool.name for tool in state.policy.tools), KNOWLEDGE_TOOL})
    else:
        state.taint = Taint.AUTH if state.access.subject else Taint.EXTERNAL
    return None


async def remember_message(state: TurnState) -> Stop | None:
    """Step 3. The message was numbered and kept raw when it was accepted; here it joins the context."""
    state.history = tuple(_utterance(entry) for entry in state.recent)
    return None


async def retrieve(state: TurnState) -> Stop | None:
    """Steps 3.5 and 4. The collections that the visitor's level reaches, the memory of this turn's scopes, and what was
    subscribed to, in one scope. The raw lane answers subscriptions only.
    """
    ttl = window.BUDGET.subscription_ttl_turns
    standing = subscriptions.expire(state.focus.subscriptions, turn=state.number, ttl=ttl)
    state.focus = replace(state.focus, subscriptions=standing)
    plan = state.policy.search
    # Outside of the scope that follows: no request to a provider holds a connection of the database.
    by_provider = await embed_question(state.tenant_id, plan, state.text, run=state.run)
    await in_thread(_retrieve, state, by_provider)
    if plan is not None and plan.reranker:
        best = await rerank(state.tenant_id, plan, state.text, state.passages, k=PASSAGES, run=state.run)
        state.passages = await in_scope(state.tenant_id, join_neighbours, best)
    last = state.recent[-_WITH_FILES:]
    after = last[0].seq if len(last) == _WITH_FILES else 0
    # A file has a number of its own between those of the messages.
    if state.message.seq - after > len(last) + (after == 0):
        state.attachments = await in_thread(read_attachments, state.tenant_id, state.session.pk, after)
    return None


def _retrieve(state: TurnState, by_provider: Sequence[QuestionVector]) -> None:
    state.notes += memories.prepare(said_since_the_last_answer(state))
    active = state.focus.active
    texts = (search_text(state.text), state.text, *(each.target for each in active))
    searched, asked, *vectors = embedding.embed_all(texts)
    with tenant_scope(state.tenant_id):
        preferences = confirmed_preferences(state.session.deployment_id)
        if asked is not None:  # a message without a visible character brings nothing to mind
            levels = state.access.reached_levels()
            most = candidates(state.policy.search, PASSAGES)
            state.passages = search(state.text, vector=searched, levels=levels, k=most, by_provider=by_provider)
            if most == PASSAGES:
                state.passages = join_neighbours(state.passages)
            state.memories = recall_for(
                Purpose.TURN,
                scopes_of(state),
                state.text,
                vector=asked,
                by_provider=by_provider,
                others=[preferences],
            )
        # A confirmed preference counts where it was confirmed, whether or not the message is about it (spec 6.6).
        others = (memory for memory in state.memories if not memory.is_default)
        state.memories = (*preferences.value, *others)
        answers = [_subscribed(state, each, vector) for each, vector in zip(active, vectors, strict=True)]
    state.subscribed = _fresh(state, list(zip(active, answers, strict=True)))


def _subscribed(state: TurnState, asked: Subscription, vector: embedding.Vector | None) -> tuple[RecalledMemory, ...]:
    strategy = MemoryQueryStrategy(asked.strategy)
    here_only = strategy is MemoryQueryStrategy.SESSION
    scopes = [each for each in scopes_of(state) if not here_only or each.kind is ScopeKind.CONVERSATION]
    return recall(scopes, asked.target, vector=vector, k=asked.max_results, tiers=tuple(Tier), strategy=strategy)


def _fresh(
    state: TurnState, answers: list[tuple[Subscription, tuple[RecalledMemory, ...]]]
) -> tuple[RecalledMemory, ...]:
    """What the subscriptions brought that the window does not show anyway, each within its model tokens."""
    shown = {memory.memory_id for memory in state.memories} | {window.id_of_entry(entry) for entry in state.recent}
    shown.add(window.id_of_entry(state.message))
    fresh = []
    for asked, found in answers:
        room = asked.max_tokens
        for memory in found:
            if shown & {memory.memory_id, memory.reference}:
                continue
            room -= count_tokens(memory.text) + FRAME_TOKENS
            if room < 0:
                break
            shown |= {memory.memory_id}
            fresh.append(memory)
    return tuple(fresh)


async def look_at_content(state: TurnState) -> Stop | None:
    """Step 4, its end: passages, memories and files are looked at by gates before any model reads them. A hit
    withholds none: it marks the turn, and the guard knows of it before a tool can be called."""
    marks = await asyncio.to_thread(_marks_of, state)
    state.marks += marks
    if marks:
        await in_scope(state.tenant_id, _record_marks, state.run, marks)
    return None


def _record_marks(run: RunRef, marks: list[ContentMark]) -> None:
    for mark in marks:
        guard.record_mark(run, mark)


def _marks_of(state: TurnState) -> list[ContentMark]:
    """Return the marks of memories: one that was written after a mark keeps it."""
    gates = state.policy.gates
    memories = {each.memory_id: each for each in (*state.memories, *state.subscribed)}.values()
    found = [
        check_content([each.title, each.quote], gates, kind=DOCUMENT, ref=each.version_id) for each in state.passages
    ]
    found += [check_content([each.name, each.text], gates, kind=FILE, ref=each.file_id) for each in state.attachments]
    found += [
        ContentMark(MEMORY, "", each.memory_id, WRITTEN_AFTER)
        if each.marked
        else check_content(each.text, gates, kind=MEMORY, ref=each.memory_id)
        for each in memories
    ]
    return [mark for mark in found if mark is not None]


async def enforce_budget(state: TurnState) -> Stop | None:
    """Step 5. What does not fit the window leaves it; the record and the memory keep it. A deployment whose own words
    leave no room is handed to a person: to cut them would change what the bot is told to be.
    """
    try:
        state.window = await window_scoring.enforced(state)
    except SilasError as refused:
        return Stop(f"context:{refused.code}", TOO_MUCH, wants_person=True)
    if state.window.evicted:
        _narrow(state, {item.ctx_id for item in state.window.items})
        if left := left_the_window(state):
            state.notes += await in_thread(_not_kept_yet, state, left)
    return None


def _not_kept_yet(state: TurnState, notes: list[Note]) -> list[Note]:
    """What was said to a customer is kept with them: who comes after must not have it kept a second time."""
    with tenant_scope(state.tenant_id):
        fresh = memories.filter_unkept(notes)
    return memories.prepare(fresh)


def _narrow(state: TurnState, kept: set[str]) -> None:
    """To what stands in the window."""
    said = zip(state.recent, state.history, strict=True)
    state.history = tuple(utterance for entry, utterance in said if window.id_of_entry(entry) in kept)
    state.passages = tuple(passage for passage in state.passages if window.id_of_passage(passage) in kept)
    state.memories = tuple(memory for memory in state.memories if window.id_of_memory(memory) in kept)
    state.subscribed = tuple(memory for memory in state.subscribed if window.id_of_memory(memory) in kept)
    state.attachments = tuple(file for file in state.attachments if window.id_of_file(file) in kept)


def _utterance(entry: Said) -> HistoryMessage:
    return HistoryMessage(sender=entry.sender, text=entry.shown, taint=Taint(entry.taint))
