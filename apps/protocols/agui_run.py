"""AG-UI 1.0: a deployment as an agent that answers `RunAgentInput` with a stream of events.

Of what a client sends, only its newest user message and its answers to interrupts are taken; the history, the state and
the tools are not believed and not run. A run is a reader of the conversation (`conversation.follow`): what it streams
is what the widget would show. Cards that wait for an approval, and questions to the customer, are interrupts.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID, uuid5

from ag_ui.core import (
    ActivitySnapshotEvent,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Interrupt,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TextPart,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    UserMessage,
)
from ag_ui.encoder import EventEncoder
from pydantic import ValidationError
from rest_framework.request import Request

from apps.approvals.models import Card
from apps.protocols import conversation
from apps.protocols.agui import MAX_THREAD_ID
from apps.protocols.conversation import Call, Delta, Run, Standing, Step, Thread, invalid
from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChronicleEntry
from apps.tenants.api_auth import Caller
from apps.visitors.models import VisitorCard
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError, error_location
from kernel.language import gettext

_log = logging.getLogger(__name__)

PROTOCOL_VERSION = "1.0"
MAX_BODY = 4 * 1024 * 1024
APPROVAL, QUESTION = "approval_required", "input_required"
_encode = EventEncoder().encode


def run(request: Request, caller: Caller, deployment_id: UUID) -> AsyncIterator[str]:
    """Take what the client sends, and return the events of its run."""
    asked = _parse(request)
    session_id = uuid5(deployment_id, f"{caller.actor} {asked.thread_id}")
    thread = conversation.open_thread(caller, deployment_id, session_id, _given(asked))
    waits_for = _resume(thread, asked.resume or ())
    message = next((each for each in reversed(asked.messages) if isinstance(each, UserMessage)), None)
    after = conversation.last_seq(thread)
    if message is not None:
        after = conversation.say(thread, _text_of(message), message_id=message.id)
    return _stream(asked, conversation.reserve_run(request, thread, after, waits_for, follows_work=bool(asked.resume)))


def _parse(request: Request) -> RunAgentInput:
    """Raises 400 `invalid`, 413 `too_large`."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
        raise SilasError(ErrorCode.TOO_LARGE, gettext("Send the newest messages only."))
    try:
        asked = RunAgentInput.model_validate(request.data)
    except ValidationError as error:
        fields = sorted({".".join(str(part) for part in each["loc"][:3])[:80] for each in error.errors()})
        raise invalid(*fields[:20]) from None
    if not 0 < len(asked.thread_id) <= MAX_THREAD_ID or not 0 < len(asked.run_id) <= MAX_THREAD_ID:
        raise invalid("threadId")
    return asked


def _given(asked: RunAgentInput) -> dict[str, object]:
    props = asked.forwarded_props if isinstance(asked.forwarded_props, Mapping) else {}
    state = asked.state if isinstance(asked.state, Mapping) else {}
    return {**({"identity_token": state["identity_token"]} if "identity_token" in state else {}), **props}


def _text_of(message: UserMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    if len(texts) != len(message.content):
        raise invalid("messages")
    return "\n".join(texts)


def _resume(thread: Thread, entries: Iterable[ResumeEntry]) -> frozenset[UUID]:
    """Answer what the entries answer; the ids that the run waits for. A cancelled entry is not waited for."""
    waits_for = set()
    for entry in entries:
        try:
            request_id = UUID(entry.interrupt_id)
        except ValueError:
            raise invalid("resume") from None
        payload = entry.payload if entry.status == "resolved" else None
        if payload is not None and not isinstance(payload, Mapping):
            raise invalid("resume")
        conversation.answer(thread, request_id, payload or None)
        waits_for |= {request_id} if entry.status == "resolved" else set()
    return frozenset(waits_for)


async def _stream(asked: RunAgentInput, run: Run) -> AsyncIterator[str]:
    """The events of a run. What fails after the first byte is a `RUN_ERROR`."""
    yield _encode(RunStartedEvent(thread_id=asked.thread_id, run_id=asked.run_id, protocol_version=PROTOCOL_VERSION))
    told = _Told(asked, run.thread)
    steps = conversation.follow(run)
    try:
        async for step in steps:
            if step is None:
                yield ": waiting\n\n"
                continue
            for event in told.events_of(step):
                yield _encode(event)
        for event in told.end():
            yield _encode(event)
    except SilasError as error:
        yield _encode(RunErrorEvent(message=error.message, code=str(error.code)))
    except Exception as error:  # noqa: BLE001 (the response has begun: the client is told of any failure)
        _log.error("agui_run_failed session=%s error=%s", run.thread.session_id, error_location(error))
        message = gettext("Something went wrong. Your message was kept; run the agent again.")
        yield _encode(RunErrorEvent(message=message, code=str(ErrorCode.UNAVAILABLE)))
    finally:
        await steps.aclose()


class _Told:
    """What a client has been told in one run, and the events that tell it the next step.

    A message has the same id in every run. One that the client holds already is not sent again; where its words differ
    from what was recorded, the client's own list is sent back with the recorded words."""

    def __init__(self, asked: RunAgentInput, thread: Thread) -> None:
        self._asked, self._thread = asked, thread
        self._messages: dict[str, object] = {each.id: each for each in asked.messages}
        self._held = frozenset(self._messages)
        self._growing, self._text = "", ""
        self._calls = set[UUID]()
        self._state: dict[str, Any] | None = None
        self._interrupts: list[Interrupt] = []

    def events_of(self, step: Step) -> Iterator[BaseEvent]:
        match step:
            case Delta():
                yield from self._grow(self._id("turn", step.turn), step.text)
            case Call():
                yield from self._call(step)
            case Standing():
                yield from self._stand(step)
            case ChronicleEntry():
                yield from self._entry(step)

    def end(self) -> Iterator[BaseEvent]:
        yield from self._close()
        outcome = (
            RunFinishedInterruptOutcome(interrupts=self._interrupts)
            if self._interrupts
            else RunFinishedSuccessOutcome()
        )
        yield RunFinishedEvent(thread_id=self._asked.thread_id, run_id=self._asked.run_id, outcome=outcome)

    def _id(self, kind: str, number: object) -> str:
        return f"{self._thread.session_id}.{kind}.{number}"

    def _grow(self, message_id: str, text: str) -> Iterator[BaseEvent]:
        if message_id in self._held:
            return
        if self._growing != message_id:
            yield from self._close()
            yield TextMessageStartEvent(message_id=message_id, role="assistant")
            self._growing, self._text = message_id, ""
        self._text += text
        yield TextMessageContentEvent(message_id=message_id, delta=text)

    def _close(self) -> Iterator[BaseEvent]:
        if self._growing:
            yield TextMessageEndEvent(message_id=self._growing)
            self._growing = ""

    def _entry(self, entry: ChronicleEntry) -> Iterator[BaseEvent]:
        if entry.kind == EntryKind.MESSAGE and entry.sender != Sender.VISITOR:
            yield from self._message(entry)
        elif entry.kind == EntryKind.STATUS:
            content = {"text": entry.text, **entry.payload}
            message_id = self._id("work", entry.payload.get("work_item_id", entry.seq))
            yield ActivitySnapshotEvent(message_id=message_id, activity_type="work", content=content)
        elif entry.kind in (EntryKind.FILE, EntryKind.SECURE_INPUT, EntryKind.SECURE_STORED):
            yield CustomEvent(name=str(entry.kind), value=rules.frame_of(entry))

    def _message(self, entry: ChronicleEntry) -> Iterator[BaseEvent]:
        message_id = self._id("turn", entry.turn) if entry.turn else self._id("entry", entry.seq)
        said = self._text if self._growing == message_id else ""
        held, recorded = self._messages.get(message_id), AssistantMessage(id=message_id, content=entry.text)
        self._messages[message_id] = recorded
        if held is None and entry.text.startswith(said):
            if rest := entry.text[len(said) :]:
                yield from self._grow(message_id, rest)
            yield from self._close()
        elif getattr(held, "content", None) != entry.text:
            yield from self._close()
            yield MessagesSnapshotEvent(messages=list(self._messages.values()))

    def _call(self, call: Call) -> Iterator[BaseEvent]:
        """A tool is named; what it was asked and what it answered stay inside."""
        if call.id not in self._calls:
            self._calls.add(call.id)
            yield ToolCallStartEvent(tool_call_id=str(call.id), tool_call_name=call.tool)
            yield ToolCallArgsEvent(tool_call_id=str(call.id), delta="{}")
            yield ToolCallEndEvent(tool_call_id=str(call.id))
        if call.is_over:
            outcome = "done" if call.succeeded else "failed"
            yield ToolCallResultEvent(message_id=f"{call.id}.result", tool_call_id=str(call.id), content=outcome)

    def _stand(self, standing: Standing) -> Iterator[BaseEvent]:
        self._interrupts = [*map(_approval, standing.cards), *map(_question, standing.prompts)]
        state = {
            "conversation": str(self._thread.session_id),
            "level": standing.level,
            "identity_problem": self._thread.identity_problem,
            "owner": standing.owner,
            "cards": [
                {"id": str(card.pk), "kind": card.kind, "risk": card.risk, "expires_at": card.expires_at.isoformat()}
                for card in standing.cards
            ],
            "work": [{"id": str(item.pk), "title": item.title, "status": item.status} for item in standing.work],
        }
        if self._state is None:
            yield StateSnapshotEvent(snapshot=state)
        elif changed := [name for name in state if state[name] != self._state[name]]:
            yield StateDeltaEvent(
                delta=[{"op": "replace", "path": f"/{name}", "value": state[name]} for name in changed]
            )
        self._state = state


def _approval(card: Card) -> Interrupt:
    return Interrupt(
        id=str(card.pk),
        reason=APPROVAL,
        message=gettext("Waiting for approval"),
        expires_at=card.expires_at.isoformat(),
        metadata={"kind": card.kind, "risk": card.risk, "payload_hash": card.payload_hash},
    )


def _question(prompt: VisitorCard) -> Interrupt:
    values = [option["value"] for option in prompt.payload["options"]]
    answers = {"choice": {"type": "string", "enum": values}}
    answers |= {"freetext": {"type": "string"}} if prompt.payload["allow_freetext"] else {}
    return Interrupt(
        id=str(prompt.pk),
        reason=QUESTION,
        message=prompt.payload["question"],
        expires_at=prompt.expires_at.isoformat(),
        response_schema={"type": "object", "properties": answers},
        metadata={"options": prompt.payload["options"], "risk": str(prompt.risk)},
    )
