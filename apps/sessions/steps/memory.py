"""Steps 3.5, 9, 10 and 11.5: what of this turn memory keeps, and the model's requests to memory.

Messages are kept raw, with private data removed, in the conversation's scope. A model's queries run when the next
window is laid out (a subscription); its write requests pass the tool gates one by one and are carried out when the turn
ends. Scopes come from the session and its access grant alone; a request has no field for one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from apps.access.levels import KNOWLEDGE_TOOL
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateTrigger
from apps.memory import decay, memories
from apps.memory.enums import ScopeKind, SourceKind, Tier
from apps.memory.schemas import Note, Scope, conversation_scope
from apps.sessions import window
from apps.sessions.context_state import Focus
from apps.sessions.enums import Sender
from apps.sessions.queries import Said
from apps.sessions.ratelimit import limits
from apps.sessions.state import Heard, Stop, TurnState, Wish
from apps.sessions.steps.input_gates import run_gates
from apps.skills.rules import split_reference
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import in_thread
from kernel.unicode_safety import replace_unstorable
from llm.context.enums import Reason, Zone
from llm.context.subscriptions import MEMORY_QUERY, subscribe
from llm.enums import MemoryOpType
from llm.schemas import MemoryOp

# Under this name tool gates check what the model asks to remember.
MEMORY_TOOL = "memory_op"
MAX_OPS = 10
SHORT = 2_000
_RAW = {
    Sender.VISITOR: SourceKind.CONVERSATION_RAW,
    Sender.BOT: SourceKind.AGENT_RESPONSE_RAW,
    Sender.HUMAN: SourceKind.STAFF_REPLY_RAW,
}


def scopes_of(state: TurnState) -> tuple[Scope, ...]:
    """Whose memory this turn may see: the company's, what was said here before anybody was known, and for as long as a
    customer's level stands theirs and what was said here to them."""
    subject = _subject(state)
    theirs = (Scope(ScopeKind.CUSTOMER, subject), conversation_scope(state.session.pk, subject)) if subject else ()
    return (*theirs, conversation_scope(state.session.pk), Scope(ScopeKind.TENANT, str(state.tenant_id)))


def own_scope(state: TurnState) -> Scope:
    """Where a wish is kept: with the verified customer while their level stands, else with what was said here."""
    subject = _subject(state)
    return Scope(ScopeKind.CUSTOMER, subject) if subject else _heard_here(state)


def _subject(state: TurnState) -> str:
    return state.access.at(now()).subject


def _heard_here(state: TurnState) -> Scope:
    """Where what this turn hears and says is kept: with whom it began for. A level that ends while a model thinks takes
    nothing of what was told under it to a later visitor."""
    return conversation_scope(state.session.pk, state.access.subject)


def said_since_the_last_answer(state: TurnState) -> list[Note]:
    """Step 3.5: the message, and what a person and the visitor said to each other before it."""
    last = max((at for at, entry in enumerate(state.recent) if entry.sender == Sender.BOT), default=-1)
    heard = state.message._replace(read_as=state.text)
    return [note for entry in (*state.recent[last + 1 :], heard) if (note := _raw(state, entry))]


def left_the_window(state: TurnState) -> list[Note]:
    """Step 5: what was evicted goes to memory, once; an acknowledgement says nothing worth it."""
    if state.window is None:
        return []
    gone = {
        each.ctx_id for each in state.window.evicted if each.zone is Zone.CHRONICLE and each.reason != Reason.TRIVIAL
    }
    left = [entry for entry in state.recent if entry.seq > state.focus.evicted and window.id_of_entry(entry) in gone]
    if left:
        state.focus = replace(state.focus, evicted=max(entry.seq for entry in left))
    return [note for entry in left if (note := _raw(state, entry))]


def _raw(state: TurnState, entry: Said) -> Note | None:
    """None for an empty text, one that a gate kept out, and one from before memories were deleted."""
    source = _RAW.get(Sender(entry.sender))
    if source is None or entry.kept_out or entry.seq <= state.focus.forgotten:
        return None
    taint, pk = Taint(entry.taint), state.session.pk
    return Note(_heard_here(state), entry.shown, source, f"seq:{entry.seq}", taint=taint, session_id=pk)


async def take_requests(state: TurnState) -> Stop | None:
    """Steps 9 and 10, their slow half: what the model asks of memory, and what of its wishes the gates let pass."""
    if state.response is None:
        return None
    for query in state.response.memory_queries:
        if query.query.strip():
            state.focus = replace(
                state.focus,
                subscriptions=subscribe(
                    state.focus.subscriptions,
                    MEMORY_QUERY,
                    query.query,
                    turn=state.number,
                    strategy=query.strategy.value,
                    max_results=min(query.max_results, 10),
                    max_tokens=min(query.max_tokens, window.BUDGET.max_subscription_tokens),
                ),
            )
    allowed = await _gated(state, state.response.memory_ops)
    wanted = [(op, _wished(state, op)) for op in allowed]
    answer = Note(
        _heard_here(state),
        state.response.message,
        SourceKind.AGENT_RESPONSE_RAW,
        "answer",
        session_id=state.session.pk,
        # A turn that recalls it later is marked as well: what was read here must not act through memory.
        marked=bool(state.marks),
    )
    heard = _heard(state)
    notes = [answer, *heard, *(note for _, note in wanted if note)]
    state.answer_note, *ready = await _prepared(notes)
    state.notes += ready[: len(heard)]
    kept = iter(ready[len(heard) :])
    state.wishes = [Wish(op, next(kept) if note else None) for op, note in wanted]
    return None


async def _prepared(notes: list[Note]) -> list[Note]:
    """What is short is prepared sooner than a thread is reached."""
    if sum(len(note.content) for note in notes) <= SHORT:
        return memories.prepare(notes)
    return await in_thread(memories.prepare, notes)


async def _gated(state: TurnState, wanted: Sequence[MemoryOp]) -> list[MemoryOp]:
    """The first ten, and no more than a minute has room for, each with the words that the gates left it. None of a
    turn that read instructions to the assistant: they would outlive it."""
    if state.marks and wanted:
        state.audit.append((AuditEvent.MEMORY_OP_BLOCKED, {"op": "all", "count": len(wanted)}))
        return []
    heard = [each for each in wanted[:MAX_OPS] if await limits.may_remember(state.tenant_id, state.session.pk)]
    if len(heard) < len(wanted):
        state.audit.append((AuditEvent.MEMORY_OPS_TRUNCATED, {"count": len(wanted) - len(heard)}))
    return [op for each in heard if (op := await _passed(state, each)) is not None]


async def _passed(state: TurnState, op: MemoryOp) -> MemoryOp | None:
    context: dict[str, object] = {"tool_name": MEMORY_TOOL, "tool_args": op.model_dump(mode="json")}
    report = await run_gates(state, GateTrigger.ON_TOOL_CALL, context)
    if report.blocked is None and report.needs_approval is None:
        try:
            return MemoryOp.model_validate(report.context["tool_args"])
        except ValidationError:
            pass
    state.audit.append((AuditEvent.MEMORY_OP_BLOCKED, {"op": op.op.value}))
    return None


def _wished(state: TurnState, op: MemoryOp) -> Note | None:
    """What a model writes came out of what visitors and documents said: it is external, even if it claims otherwise."""
    if not op.content:
        return None
    return Note(
        own_scope(state),
        op.content,
        SourceKind.MEMORY_OP,
        memories.request_reference(op.content),
        taint=Taint.EXTERNAL,
        tier=Tier.ACTIVE,
        memory_type=op.memory_type,
        session_id=state.session.pk,
        tags=tuple(op.tags),
        entity_refs=tuple(op.entity_refs),
    )


def _heard(state: TurnState) -> list[Note]:
    """Step 11.5, its other half: what tools answered. Of a search in the documents only the question is kept: what it
    found is kept in the documents."""
    scope, pk = _heard_here(state), state.session.pk
    skill_of = {tool.name: split_reference(tool.skill)[0] for tool in state.policy.tools}
    return [
        Note(
            scope,
            *_told(heard),
            window.call_reference(heard.done.call_id),
            session_id=pk,
            tags=window.tags_of(skill_of.get(heard.tool, "")),
            marked=bool(state.marks),
        )
        for heard in state.heard
    ]


def _told(heard: Heard) -> tuple[str, SourceKind]:
    if heard.tool == KNOWLEDGE_TOOL:
        return replace_unstorable(str(heard.args.get("query", ""))), SourceKind.RESEARCH_QUERY_RAW
    return replace_unstorable(json.dumps(heard.done.value, ensure_ascii=False, default=str)), SourceKind.TOOL_OUTPUT_RAW


def carry_out(state: TurnState) -> None:
    """Step 10, inside the closing transaction. Nothing is written of a conversation that was forgotten meanwhile."""
    if not state.wishes or _forgotten(state):
        return
    done = Counter(wish.op.op.value if _done(state, wish) else "refused" for wish in state.wishes)
    record(AuditEvent.MEMORY_OPS, subject=f"session:{state.session.pk}", data=dict(done))


def _done(state: TurnState, wish: Wish) -> bool:
    op, note, scopes = wish.op, wish.note, [scope for scope in scopes_of(state) if scope.kind is not ScopeKind.TENANT]
    match op.op:
        case MemoryOpType.STORE:
            return note is not None and memories.store(note)
        case MemoryOpType.UPDATE:
            return note is not None and memories.update(str(op.memory_id), note, scopes=scopes)
        case MemoryOpType.DELETE:
            return memories.delete(str(op.memory_id), scopes=scopes)
        case MemoryOpType.LINK:
            return memories.link(str(op.memory_id), to=str(op.link_to), kind=str(op.link_type), scopes=scopes)


def keep_raw(state: TurnState) -> None:
    """Steps 3.5 and 11.5, inside the closing transaction, right behind the recorded answer; which memories were
    used; and the focus."""
    if not _forgotten(state):
        notes = list(state.notes)
        if state.answer_note and state.stop is None:
            notes.append(replace(state.answer_note, reference=f"seq:{state.session.seq}"))
        memories.keep(notes)
        decay.record_use(each.memory_id for each in (*state.memories, *state.subscribed))
        _write_focus(state)


def _forgotten(state: TurnState) -> bool:
    """True if the locked row says that this conversation was forgotten after the turn began, or after its message
    came: an answer may repeat what it answers."""
    kept = Focus.of(state.session.focus)
    return kept.forgettings != state.focus.forgettings or state.message.seq <= kept.forgotten


def _write_focus(state: TurnState) -> None:
    before = Focus.of(state.session.focus)
    if state.focus == before:
        return
    state.session.focus = state.focus.as_kept()
    state.session.save(update_fields=["focus"])
    if state.focus.profile != before.profile:
        data = {"profile": state.focus.profile, "from": before.profile}
        record(AuditEvent.CONTEXT_PROFILE_CHANGED, subject=f"session:{state.session.pk}", data=data)
