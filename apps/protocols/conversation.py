"""Hold a conversation for an outside agent: open it, hand in what was said, follow what comes of it.

AG-UI and A2A both go through here. An outside agent is a visitor that brings an API key: the key says whose
conversations it holds, and raises no level. Only the caller that started a conversation finds it. What is followed is
read from the rows, in order; only the growing answer comes from the live group, as it does for the widget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync, sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import IntegrityError
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Cast
from pydantic import ValidationError
from rest_framework.request import Request

from apps.access.tokens import Visitor, resume_token_of
from apps.approvals.api import DecisionRequest, decide_as_program
from apps.approvals.cards.kinds import AWAITED_KINDS
from apps.approvals.models import Card
from apps.approvals.models.cards import OPEN_STATUSES
from apps.approvals.queries import open_cards
from apps.bus.enums import LIVE, Queue
from apps.bus.models import QueueMessage
from apps.bus.queries import pending_count
from apps.events.stream import HEARTBEAT_SECONDS, RECHECK_SECONDS, RENEW_SECONDS, close_connection
from apps.guard.enums import CallState, Intent
from apps.guard.models import ToolCall
from apps.sessions import rules, runner
from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import chronicle_after, session_by_id
from apps.sessions.ratelimit.limits import bounds
from apps.sessions.schemas import Busy, DecisionFrame, MessageFrame
from apps.sessions.services import accept_message
from apps.tenants.api_auth import Caller, authenticate_bearer, authorize, validated
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.queries import deployment_by_id
from apps.tenants.rules import roles_with
from apps.visitors import prompts
from apps.visitors.api.sessions import NewConversation
from apps.visitors.enums import AskKind, AskStatus
from apps.visitors.models import VisitorCard
from apps.visitors.start_session import Wish, begin
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from apps.work.queries import OPEN as OPEN_ITEMS
from apps.work.queries import open_items_of
from kernel import live
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import InvalidFields, NotFound, SilasError
from kernel.language import gettext
from kernel.ratelimit import concurrency
from kernel.tenancy import in_scope, in_thread, tenant_scope

# How often the rows are read while nothing is told; how long a run stays open at most; how long it follows work that
# an approval started.
POLL_SECONDS, RUN_SECONDS, WORK_SECONDS = 2.0, 900.0, 60.0
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_RETRY_SECONDS = 10
# What an agent may say of its customer.
_GIVEN = ("identity_token", "consent", "locale", "attributes")
_ANSWERING = roles_with(Capability.ANSWER)


@dataclass(frozen=True)
class Thread:
    """A conversation in the hands of the caller that started it. `identity_problem`: why its token was not believed."""

    caller: Caller
    visitor: Visitor
    deployment_id: UUID
    identity_problem: str = ""

    @property
    def tenant_id(self) -> UUID:
        return self.caller.tenant_id

    @property
    def session_id(self) -> UUID:
        return self.visitor.session_id


@dataclass(frozen=True)
class Delta:
    """A piece of the growing answer of a turn."""

    turn: int
    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool, by name and outcome; what it was asked and what it answered stay inside."""

    id: UUID
    tool: str
    is_over: bool
    succeeded: bool


@dataclass(frozen=True)
class Standing:
    """How a conversation stands: level, who answers, what waits for a person, what its visitor was asked, and work.

    `is_pending`: an answer is still to come."""

    is_pending: bool
    level: str
    owner: str
    cards: Sequence[Card]
    prompts: Sequence[VisitorCard]
    work: Sequence[WorkItem]

    def is_waiting(self, ids: Collection[UUID]) -> bool:
        return any(card.pk in ids for card in self.cards)

    def is_working(self) -> bool:
        """True while work goes on that waits for no person."""
        held = {card.subject_id for card in self.cards}
        return any(item.pk not in held and item.status != WorkItemStatus.PAUSED for item in self.work)


Step = Delta | Call | ChronicleEntry | Standing


@dataclass(frozen=True)
class Run:
    """One reader of a conversation: what comes after the entry `after`, until the cards `waits_for` are decided too,
    and for `WORK_SECONDS` until work that needs no person has ended (`follows_work`).

    `holder` is its place among the company's runs; `is_allowed` repeats the authentication of its request."""

    thread: Thread
    after: int
    holder: str
    is_allowed: Callable[[], bool]
    waits_for: frozenset[UUID] = frozenset()
    follows_work: bool = False


@dataclass(frozen=True)
class _Look:
    standing: Standing
    epoch: int
    entries: list[ChronicleEntry]
    calls: list[tuple[int, Call]]


def open_thread(caller: Caller, deployment_id: UUID, session_id: UUID, given: Mapping[str, object]) -> Thread:
    """Resume the caller's conversation or begin one with this id. `given`: what it says of its customer, with the
    fields of `NewConversation`; others are ignored.

    Opens its own scopes. Raises 404 for a deployment that is foreign or off and for another caller's conversation,
    403 `consent_required`, 409 `conversation_of_other`, 400 `invalid`."""
    values = validated(NewConversation, {name: given[name] for name in _GIVEN if name in given})
    with tenant_scope(caller.tenant_id):
        deployment = deployment_by_id(deployment_id)
        session = ChatSession.objects.filter(pk=session_id).first()
    if not deployment.enabled or (session is not None and not _is_held(session, caller, deployment_id)):
        raise NotFound()
    visitor = Visitor(deployment.public_key, caller.tenant_id, session_id)
    if session is not None and not values:
        return Thread(caller, visitor, deployment_id)
    wish = Wish(
        resume_token=resume_token_of(session_id),
        locale=values.get("locale", ""),
        consent=values.get("consent", ""),
        token=values.get("identity_token") or "",
        attributes=values.get("attributes", {}),
        started_by=caller.actor,
        session_id=session_id,
    )
    try:
        begun = begin(deployment, wish)
    except IntegrityError:
        # Another request of the same caller has begun it this moment, or its token is of an earlier `SECRET_KEY`.
        try:
            begun = begin(deployment, wish)
        except IntegrityError:
            raise SilasError(ErrorCode.CONVERSATION_OF_OTHER) from None
    return Thread(caller, visitor, deployment_id, begun.reason)


def held_thread(caller: Caller, deployment_id: UUID, session_id: UUID) -> Thread:
    """The caller's conversation. Opens its own scope. Raises 404 for any other."""
    with tenant_scope(caller.tenant_id):
        session = session_by_id(session_id)
        if not _is_held(session, caller, deployment_id) or not session.deployment.enabled:
            raise NotFound()
        return Thread(caller, Visitor(session.deployment.public_key, caller.tenant_id, session_id), deployment_id)


def held_sessions(caller: Caller, deployment_id: UUID) -> QuerySet[ChatSession]:
    """The conversations that the caller started with the deployment. Inside a scope. Raises 404 for a deployment that
    is foreign or off."""
    if not deployment_by_id(deployment_id).enabled:
        raise NotFound()
    return ChatSession.objects.select_related("deployment").filter(deployment_id=deployment_id, started_by=caller.actor)


def thread_of(caller: Caller, session: ChatSession) -> Thread:
    """One of `held_sessions` as the caller's."""
    visitor = Visitor(session.deployment.public_key, caller.tenant_id, session.pk)
    return Thread(caller, visitor, session.deployment_id)


def is_unsettled() -> Q:
    """Sessions in which anything may be open: an answer, a person, a question, a card or work. The rest has ended."""
    waiting = QueueMessage.objects.filter(queue=Queue.PROXY, state__in=LIVE)
    here = {"session_id": OuterRef("pk")}
    return (
        Q(owner=Owner.HUMAN)
        | Exists(waiting.filter(scope_id=Cast(OuterRef("pk"), CharField())))
        | Exists(VisitorCard.objects.filter(**here, status=AskStatus.OPEN))
        | Exists(Card.objects.filter(**here, status__in=OPEN_STATUSES))
        | Exists(WorkItem.objects.filter(**here, status__in=OPEN_ITEMS))
    )


def _is_held(session: ChatSession, caller: Caller, deployment_id: UUID) -> bool:
    return session.started_by == caller.actor and session.deployment_id == deployment_id


def say(thread: Thread, text: str, *, message_id: str) -> int:
    """Accept what the customer wrote, once for each `message_id`; its place in the conversation.

    Raises 400 `invalid`, 409 `conversation_full`, `idempotency_key_reused`, 429 `rate_limited`."""
    try:
        frame = MessageFrame(type="message", text=text, client_id=sha256_hex(f"{thread.caller.actor} {message_id}"))
    except ValidationError:
        raise invalid("text") from None
    with tenant_scope(thread.tenant_id):
        accepted = accept_message(thread.session_id, text=frame.text, client_id=frame.client_id, bounds=bounds())
        if isinstance(accepted, Busy):
            raise SilasError(ErrorCode.RATE_LIMITED, accepted.said, extra={"retry_after": accepted.retry_after})
        if accepted.repeated and chronicle_after(thread.session_id, accepted.seq - 1, limit=1)[0].text != frame.text:
            raise SilasError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
        return accepted.seq


def answer(thread: Thread, request_id: UUID, given: Mapping[str, Any] | None) -> None:
    """Answer what a run waited for: a question to the visitor with `choice` or `freetext`, a card with the fields of
    `DecisionRequest`. Without `given` a card is only waited for.

    Raises 404 for what is not this conversation's, 403 `forbidden_scope` without `cards:decide`, and what the two
    services raise."""
    with tenant_scope(thread.tenant_id):
        is_card = Card.objects.filter(pk=request_id, session_id=thread.session_id).exists()
        if not is_card:
            prompts.card_of(request_id, thread.session_id)
    if given is None:
        return
    if is_card:
        authorize(thread.caller, scope=KeyScope.CARDS_DECIDE, roles=roles_with(Capability.DECIDE))
        decide_as_program(thread.caller, request_id, validated(DecisionRequest, given))
        return
    try:
        frame = DecisionFrame(
            type="decision_response",
            request_id=request_id,
            selected_value=given.get("choice", ""),
            freetext=given.get("freetext", ""),
        )
    except ValidationError:
        raise invalid("choice") from None
    with tenant_scope(thread.tenant_id):
        prompts.answer(thread.visitor, request_id, value=frame.selected_value, words=frame.freetext)


def invalid(*fields: str) -> SilasError:
    return InvalidFields({name: ["invalid"] for name in fields})


def last_seq(thread: Thread) -> int:
    """How far the conversation has come. Opens its own scope."""
    with tenant_scope(thread.tenant_id):
        return session_by_id(thread.session_id).seq


def standing_of(session_id: UUID) -> Standing:
    """Inside a scope."""
    # Before the cards: a turn that opens one is unfinished now or has opened it. The entries of a turn that ends after
    # this are read next.
    was_pending = pending_count(Queue.PROXY, session_id) > 0
    session = session_by_id(session_id)
    asked = VisitorCard.objects.filter(session=session, status=AskStatus.OPEN, expires_at__gt=now())
    work = open_items_of(subject=session.customer, session_id=session.pk)
    cards = tuple(open_cards().filter(session_id=session.pk, kind__in=AWAITED_KINDS))
    questions = tuple(asked.filter(kind=AskKind.DECISION))
    return Standing(
        # After the cards as well: the transaction that decides one puts what follows from it on the queue.
        was_pending or pending_count(Queue.PROXY, session_id) > 0,
        session.level_at(now()),
        session.owner,
        cards,
        questions,
        tuple(each for each in work if each.session_id == session.pk),
    )


def reserve_run(
    request: Request, thread: Thread, after: int, waits_for: frozenset[UUID] = frozenset(), *, follows_work: bool
) -> Run:
    """A run of `follow`, which gives its place back, from outside the event loop. Raises 429 `rate_limited`."""
    holder, place = uuid4().hex, _place(thread.tenant_id)
    if not async_to_sync(concurrency.acquire)(place, holder, maximum=settings.AGENT_RUNS):
        message = gettext("Too many runs of agents are open.")
        raise SilasError(ErrorCode.RATE_LIMITED, message, extra={"retry_after": _RETRY_SECONDS})
    return Run(thread, after, holder, _is_still_allowed(request, thread.caller), waits_for, follows_work)


def _place(tenant_id: UUID) -> str:
    return f"agents.{tenant_id.hex}"


def _is_still_allowed(request: Request, caller: Caller) -> Callable[[], bool]:
    """Whether the credential of the request would still be accepted, with the scope to write."""
    token = request.headers.get("Authorization", "").partition(" ")[2].strip()

    def is_allowed() -> bool:
        try:
            again = authenticate_bearer(token)
            authorize(again, scope=KeyScope.SESSIONS_WRITE, roles=_ANSWERING)
        except SilasError:
            return False
        return (again.tenant_id, again.actor) == (caller.tenant_id, caller.actor)

    return is_allowed


async def follow(run: Run) -> AsyncGenerator[Step | None]:
    """How the conversation stands, then pieces, calls and entries as they come, and None for a heartbeat.

    Ends with the standing once nothing waits here, and the cards that the run waits for are decided. The turn is not
    this generator's: it goes on when the reader leaves. Raises 401 `not_authenticated` when the credential has ended.
    """
    await sync_to_async(close_connection)()
    loop, thread = asyncio.get_running_loop(), run.thread
    group = rules.group_of(thread.session_id)
    live.serve_from(loop)
    layer = get_channel_layer()
    channel, events = await layer.new_channel(), asyncio.Queue[dict[str, Any]]()
    hear = events.put
    elsewhere = loop.create_task(_receive(layer, channel, events))
    try:
        await live.join(group, channel, hear)
        async for step in _steps(run, events):
            yield step
    finally:
        live.remove_listener(group, hear)
        elsewhere.cancel()
        with suppress(asyncio.CancelledError):
            await elsewhere
        await live.leave(group, channel)
        await concurrency.release(_place(thread.tenant_id), run.holder)


async def _receive(layer: Any, channel: str, events: asyncio.Queue[dict[str, object]]) -> None:
    """Take what other processes publish."""
    while True:
        for event in live.unpack_events(await layer.receive(channel), attending=True):
            await events.put(event)


async def _steps(run: Run, events: asyncio.Queue[dict[str, object]]) -> AsyncGenerator[Step | None]:
    thread, after, calls = run.thread, run.after, dict[UUID, Call]()
    looked = await in_scope(thread.tenant_id, _look, thread, after, -1)
    first_call = max((seq for seq, _ in looked.calls), default=-1)
    looked.calls.clear()
    runner.wake(thread.tenant_id, thread.session_id)
    began = said = checked = renewed = time.monotonic()
    decided_at: float | None = None
    while True:
        for _, call in looked.calls:
            if calls.get(call.id) != call:
                calls[call.id] = call
                yield call
        for entry in looked.entries:
            after = entry.seq
            yield entry
        yield looked.standing
        moment, is_waiting = time.monotonic(), looked.standing.is_waiting(run.waits_for)
        if not is_waiting and decided_at is None:
            decided_at = moment
        follows_work = run.follows_work and moment - (decided_at or moment) < WORK_SECONDS
        is_working = follows_work and looked.standing.is_working()
        if not (looked.standing.is_pending or is_waiting or is_working) or moment - began > RUN_SECONDS:
            return
        event, until = dict[str, Any](), moment + POLL_SECONDS
        while event.get("type") != "chat.frame" and (left := until - time.monotonic()) > 0:
            with suppress(TimeoutError):
                event = await asyncio.wait_for(events.get(), left)
                if event["type"] == "chat.delta" and event["epoch"] >= looked.epoch:
                    said = time.monotonic()
                    yield Delta(event["turn"], event["text"])
        moment = time.monotonic()
        if moment - checked >= RECHECK_SECONDS:
            if not await in_thread(run.is_allowed):
                raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Invalid API key."))
            checked = moment
        if moment - renewed >= RENEW_SECONDS:
            await concurrency.renew({run.holder: _place(thread.tenant_id)})
            renewed = moment
        if moment - said >= HEARTBEAT_SECONDS:
            yield None
            said = moment
        looked = await in_scope(thread.tenant_id, _look, thread, after, first_call)


def _look(thread: Thread, after: int, call_seq: int) -> _Look:
    standing, session = standing_of(thread.session_id), session_by_id(thread.session_id)
    calls = ToolCall.objects.filter(run_id=session.run_id, seq__gt=call_seq).exclude(intent=Intent.CONVERSE)
    return _Look(
        standing,
        session.owner_epoch,
        chronicle_after(session.pk, after),
        [
            (call.seq, Call(call.pk, call.tool, call.state != CallState.ADMITTED, call.state == CallState.EXECUTED))
            for call in calls.order_by("seq")
        ],
    )
