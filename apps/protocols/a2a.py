"""A2A 1.0 over JSON-RPC: a deployment as an agent with a card, and each message of the other agent as a task.

A context is a conversation that the caller started, and a task is one message in it with what came of it, so that
nothing is stored here: a task's id names both. Messages of ours are artifacts. A card that waits for an approval makes
its task `AUTH_REQUIRED`, a question to the customer `INPUT_REQUIRED`.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin
from uuid import UUID, uuid5

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.events.api import EventStreamRenderer
from apps.protocols import conversation
from apps.protocols.conversation import STREAM_HEADERS, Call, Delta, Run, Standing, Step, Thread, invalid
from apps.sessions import runner, served
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import chronicle_after
from apps.tenants.api_auth import RESOURCE_REFUSALS, BearerAuthentication, Caller, ScopedView, uncached
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError, error_location
from kernel.language import gettext
from kernel.pagination import is_cursor, read_page
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)

PROTOCOL_VERSION = "1.0"
MAX_BODY = 1024 * 1024
_TASK_ID = re.compile(r"([0-9a-f]{32})-([0-9]{1,12})\Z")
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS, _REFUSED = -32600, -32601, -32602, -32000
_NO_TASK, _NOT_CANCELABLE, _NO_PUSH, _UNSUPPORTED, _CONTENT, _NO_VERSION = (
    -32001,
    -32002,
    -32003,
    -32004,
    -32005,
    -32009,
)
WORKING, COMPLETED = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"
INPUT_REQUIRED, AUTH_REQUIRED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"
_ANY_STATE = "TASK_STATE_UNSPECIFIED"
# The last four are states of the protocol that no task of ours is in.
_STATES = (
    _ANY_STATE,
    *(WORKING, COMPLETED, INPUT_REQUIRED, AUTH_REQUIRED),
    *(f"TASK_STATE_{word}" for word in ("SUBMITTED", "FAILED", "CANCELED", "REJECTED")),
)
MOST_TASKS = 100
_ASKED = {"kind": EntryKind.MESSAGE, "sender": Sender.VISITOR}


class RpcError(Exception):
    """A refusal in the protocol's own codes."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Task:
    """One message of the other agent, by its place in the conversation."""

    thread: Thread
    seq: int

    @property
    def id(self) -> str:
        return f"{self.thread.session_id.hex}-{self.seq}"

    @property
    def context_id(self) -> str:
        return str(self.thread.session_id)


class A2aRequest(serializers.Serializer[object]):
    """A JSON-RPC 2.0 request of A2A 1.0."""

    jsonrpc = serializers.ChoiceField(choices=["2.0"])
    id = serializers.CharField(required=False)
    method = serializers.CharField()
    params = serializers.DictField(required=False)


class _AgentView(ScopedView):
    authentication_classes = (BearerAuthentication,)
    capability = Capability.ANSWER
    reading = writing = KeyScope.SESSIONS_WRITE


class AgentCard(_AgentView):
    @extend_schema(
        operation_id="agents_a2a_card",
        tags=["agents"],
        responses={200: OpenApiTypes.OBJECT, **RESOURCE_REFUSALS},
    )
    def get(self, request: Request, deployment_id: UUID) -> Response:
        """Read the A2A agent card of the chatbot."""
        with tenant_scope(self.caller.tenant_id):
            deployment = deployment_by_id(deployment_id)
            if not deployment.enabled:
                raise NotFound()
            serving = served.settings_of(ChatSession(deployment=deployment))
            company = deployment.tenant.name
        home = settings.PASSKEY_ORIGIN or request.build_absolute_uri("/")
        address = reverse("api-agents-a2a", args=[deployment_id])
        card = {
            "name": deployment.title,
            "description": serving.greeting or deployment.title,
            "version": "1",
            "provider": {"organization": company, "url": home},
            "supportedInterfaces": [
                {"url": urljoin(home, address), "protocolBinding": "JSONRPC", "protocolVersion": PROTOCOL_VERSION}
            ],
            "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain"],
            "skills": [
                {
                    "id": "chat",
                    "name": deployment.title,
                    "description": serving.greeting or deployment.title,
                    "tags": ["conversation"],
                    "examples": list(serving.suggestions),
                }
            ],
        }
        return uncached(card)


class AgentCalls(_AgentView):
    renderer_classes = (JSONRenderer, EventStreamRenderer)
    recognises_repeats = True

    @extend_schema(
        operation_id="agents_a2a_call",
        tags=["agents"],
        request=A2aRequest,
        responses={
            200: OpenApiTypes.OBJECT,
            **RESOURCE_REFUSALS,
            413: OpenApiResponse(description="`too_large`"),
        },
    )
    def post(self, request: Request, deployment_id: UUID) -> HttpResponseBase:
        """Call a method of A2A 1.0: `SendMessage`, `SendStreamingMessage`, `GetTask`, `ListTasks`,
        `SubscribeToTask`."""
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BODY:
            raise SilasError(ErrorCode.TOO_LARGE, gettext("The request is too large."))
        body = request.data if isinstance(request.data, Mapping) else {}
        rpc_id = body.get("id") if isinstance(body.get("id"), str | int) else None
        method, params = body.get("method"), body.get("params", {})
        try:
            if body.get("jsonrpc") != "2.0" or not isinstance(method, str) or not isinstance(params, Mapping):
                raise RpcError(_INVALID_REQUEST, gettext("This is no request of JSON-RPC 2.0."))
            if (version := request.headers.get("A2A-Version", PROTOCOL_VERSION)).partition(".")[0] != "1":
                raise RpcError(_NO_VERSION, gettext("Use version 1.0, not {version}.").format(version=version[:20]))
            if method not in _METHODS:
                raise RpcError(_NO_METHOD, gettext("There is no such method."))
            return _METHODS[method](_Request(request, self.caller, deployment_id, rpc_id, params))
        except (SilasError, RpcError, serializers.ValidationError) as error:
            refusal = _failure(rpc_id, error)
            # Clients read every answer to these as a stream, a refusal as well.
            if method in ("SendStreamingMessage", "SubscribeToTask"):
                return HttpResponse(_line(refusal), content_type="text/event-stream", headers=STREAM_HEADERS)
            return uncached(refusal)


@dataclass(frozen=True)
class _Request:
    http: Request
    caller: Caller
    deployment_id: UUID
    rpc_id: str | int | None
    params: Mapping[str, Any]


def _send(asked: _Request) -> HttpResponseBase:
    task, waits_for = _take_message(asked)
    configuration = asked.params.get("configuration")
    if isinstance(configuration, Mapping) and configuration.get("returnImmediately") is True:
        async_to_sync(_wake)(task.thread)
        return uncached(_success(asked.rpc_id, {"task": _read(task).task()}))
    run = conversation.reserve_run(asked.http, task.thread, task.seq, waits_for, follows_work=bool(waits_for))
    return StreamingHttpResponse(_answer(asked, task, run), content_type="application/json", headers=STREAM_HEADERS)


def _send_streaming(asked: _Request) -> HttpResponseBase:
    task, waits_for = _take_message(asked)
    return _stream(asked, task, waits_for, follows_work=bool(waits_for))


def _subscribe(asked: _Request) -> HttpResponseBase:
    """Follow a task that has not ended; one that waits for an approval until that is decided."""
    task = _task_of(asked, asked.params.get("id"))
    progress = _read(task)
    if progress.state == COMPLETED:
        raise RpcError(_UNSUPPORTED, gettext("This task has ended."))
    return _stream(asked, task, frozenset(card.pk for card in progress.cards), follows_work=True)


def _get(asked: _Request) -> HttpResponseBase:
    history = _number(asked.params, "historyLength", least=0, usual=0)
    task = _task_of(asked, asked.params.get("id"))
    shown = _read(task).task()
    if history:
        with tenant_scope(asked.caller.tenant_id):
            (first,) = chronicle_after(task.thread.session_id, task.seq - 1, limit=1)
        shown |= _asked_of(task, first.text)
    return uncached(_success(asked.rpc_id, shown))


def _list(asked: _Request) -> HttpResponseBase:
    """The caller's own tasks with the deployment, the last changed first."""
    limit = _number(asked.params, "pageSize", least=1, most=MOST_TASKS, usual=50)
    history = _number(asked.params, "historyLength", least=0, usual=0)
    with_artifacts = asked.params.get("includeArtifacts", False)
    before = asked.params.get("pageToken") or ""
    if not isinstance(with_artifacts, bool):
        raise invalid("includeArtifacts")
    if not isinstance(before, str) or (before and not is_cursor(before)):
        raise invalid("pageToken")
    with tenant_scope(asked.caller.tenant_id):
        rows = _wanted(asked)
        found, following = read_page(rows, before=before, limit=limit, moment="changed_at")
        total = rows.count()
    tasks = []
    for row in found:
        task = Task(conversation.thread_of(asked.caller, row.session), row.seq)
        listed = _read(task, moment=row.changed_at, is_last=row.is_last).task()
        if not with_artifacts:
            del listed["artifacts"]
        tasks.append(listed | _asked_of(task, row.text) if history else listed)
    result = {"tasks": tasks, "nextPageToken": following, "pageSize": limit, "totalSize": total}
    return uncached(_success(asked.rpc_id, result))


def _wanted(asked: _Request) -> QuerySet[Any]:
    """The messages whose tasks `contextId`, `status` and `statusTimestampAfter` leave, with when each last changed and
    whether it is its conversation's last. Inside a scope."""
    sessions = conversation.held_sessions(asked.caller, asked.deployment_id)
    if context_id := asked.params.get("contextId"):
        sessions = sessions.filter(pk=_uuid(context_id))
    later = ChronicleEntry.objects.filter(session_id=OuterRef("session_id"), seq__gt=OuterRef("seq"), **_ASKED)
    # Places have no gaps: a task ends at the place before the next message, or at the conversation's last.
    end = ChronicleEntry.objects.filter(session_id=OuterRef("session_id"), seq=OuterRef("seq") - 1)
    ends = later.order_by("seq").annotate(end=Subquery(end.values("created_at"))).values("end")[:1]
    last = ChronicleEntry.objects.filter(session_id=OuterRef("session_id")).order_by("-seq").values("created_at")[:1]
    rows: QuerySet[Any] = ChronicleEntry.objects.select_related("session__deployment")
    rows = rows.filter(session__in=sessions, **_ASKED)
    rows = rows.annotate(is_last=~Exists(later), changed_at=Coalesce(Subquery(ends), Subquery(last)))
    if after := asked.params.get("statusTimestampAfter"):
        rows = rows.filter(changed_at__gte=_moment(after))
    status = asked.params.get("status") or _ANY_STATE
    if status not in _STATES:
        raise invalid("status")
    return rows if status == _ANY_STATE else _in_state(asked, rows, sessions, status)


def _in_state(asked: _Request, rows: QuerySet[Any], sessions: QuerySet[ChatSession], status: str) -> QuerySet[Any]:
    """All but the last task of a conversation have ended, and so has that one where nothing is open."""
    states: dict[UUID, str] = {}
    for row in rows.filter(is_last=True, session__in=sessions.filter(conversation.is_unsettled())):
        states[row.session_id] = _read(Task(conversation.thread_of(asked.caller, row.session), row.seq)).state
    if status == COMPLETED:
        return rows.exclude(is_last=True, session__in=[pk for pk, state in states.items() if state != COMPLETED])
    return rows.filter(is_last=True, session__in=[pk for pk, state in states.items() if state == status])


def _asked_of(task: Task, text: str) -> dict[str, object]:
    """The history of a task: the message that began it. What was answered is among its artifacts."""
    asked = {"messageId": task.id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"history": [asked | {"taskId": task.id, "contextId": task.context_id}]}


def _number(params: Mapping[str, object], name: str, *, least: int, usual: int, most: int = 2**31 - 1) -> int:
    value = params.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise invalid(name)
    return value


def _moment(text: object) -> datetime:
    try:
        moment = parse_datetime(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise invalid("statusTimestampAfter")
    return moment


def _cancel(asked: _Request) -> HttpResponseBase:
    _task_of(asked, asked.params.get("id"))
    raise RpcError(_NOT_CANCELABLE, gettext("What was said is answered; it can't be taken back."))


def _no_push(asked: _Request) -> HttpResponseBase:
    raise RpcError(_NO_PUSH, gettext("Use a webhook of the events instead of push notifications."))


def _unsupported(asked: _Request) -> HttpResponseBase:
    raise RpcError(_UNSUPPORTED, gettext("This method isn't supported."))


_METHODS: dict[str, Callable[[_Request], HttpResponseBase]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _send_streaming,
    "GetTask": _get,
    "SubscribeToTask": _subscribe,
    "CancelTask": _cancel,
    "ListTasks": _list,
    "GetExtendedAgentCard": _unsupported,
    "CreateTaskPushNotificationConfig": _no_push,
    "GetTaskPushNotificationConfig": _no_push,
    "ListTaskPushNotificationConfigs": _no_push,
    "DeleteTaskPushNotificationConfig": _no_push,
}


async def _wake(thread: Thread) -> None:
    runner.wake(thread.tenant_id, thread.session_id)


def _take_message(asked: _Request) -> tuple[Task, frozenset[UUID]]:
    """Hand in the message, or answer what its task waits for: the task, and the cards that it waits for.

    Without a context the first message names the conversation, so that it begins one however often it is sent."""
    message = asked.params.get("message")
    if not isinstance(message, Mapping) or not isinstance(message.get("messageId"), str) or not message["messageId"]:
        raise RpcError(_INVALID_PARAMS, gettext("A message needs a messageId."))
    if message.get("role") not in (None, "ROLE_USER"):
        raise RpcError(_INVALID_PARAMS, gettext("A message has the role ROLE_USER."))
    text, data = _content_of(message)
    context_id = message.get("contextId") or ""
    if message.get("taskId"):
        task = _task_of(asked, message["taskId"])
        if context_id and context_id != task.context_id:
            raise RpcError(_INVALID_PARAMS, gettext("The task is of another context."))
        return task, _answer_task(task, text, data)
    given = asked.params.get("metadata")
    given = given if isinstance(given, Mapping) else {}
    if context_id:
        thread = conversation.held_thread(asked.caller, asked.deployment_id, _uuid(context_id))
        if given:
            thread = conversation.open_thread(asked.caller, asked.deployment_id, thread.session_id, given)
    else:
        session_id = uuid5(asked.deployment_id, f"{asked.caller.actor} a2a {message['messageId']}")
        thread = conversation.open_thread(asked.caller, asked.deployment_id, session_id, given)
    return Task(thread, conversation.say(thread, text, message_id=message["messageId"])), frozenset()


def _content_of(message: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """The text of its parts, and the object of its data part."""
    parts = message.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise RpcError(_INVALID_PARAMS, gettext("A message has parts."))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    objects = [part["data"] for part in parts if isinstance(part.get("data"), Mapping)]
    if len(texts) + len(objects) != len(parts) or len(objects) > 1:
        raise RpcError(_CONTENT, gettext("Send text, and one object of data at most."))
    return "\n".join(texts), objects[0] if objects else {}


def _answer_task(task: Task, text: str, data: Mapping[str, object]) -> frozenset[UUID]:
    """Answer the card or question that `data` names as `id`, or the one question that is open; with text alone by the
    value of an option or in the customer's own words."""
    progress = _read(task)
    given = {name: value for name, value in data.items() if name != "id"}
    if "id" in data:
        request_id = _uuid(data["id"])
    elif len(progress.prompts) == 1:
        (prompt,) = progress.prompts
        request_id = prompt.pk
        values = [option["value"] for option in prompt.payload["options"]]
        given = given or ({"choice": text} if text in values else {"freetext": text})
    else:
        raise RpcError(_UNSUPPORTED, gettext("This task takes no message. Send it without a taskId."))
    conversation.answer(task.thread, request_id, given or None)
    return frozenset(card.pk for card in progress.cards if card.pk == request_id)


def _task_of(asked: _Request, task_id: object) -> Task:
    named = _TASK_ID.match(task_id) if isinstance(task_id, str) else None
    if named is None:
        raise NotFound()
    task = Task(conversation.held_thread(asked.caller, asked.deployment_id, UUID(named[1])), int(named[2]))
    with tenant_scope(asked.caller.tenant_id):
        first = chronicle_after(task.thread.session_id, task.seq - 1, limit=1)
    if not first or first[0].seq != task.seq or not _is_asked(first[0]):
        raise NotFound()
    return task


def _is_asked(entry: ChronicleEntry) -> bool:
    return entry.kind == EntryKind.MESSAGE and entry.sender == Sender.VISITOR


def _uuid(text: object) -> UUID:
    try:
        return UUID(text if isinstance(text, str) else "")
    except ValueError:
        raise invalid("id") from None


def _read(task: Task, *, moment: datetime | None = None, is_last: bool = True) -> _Progress:
    """`moment`: when it last changed, if known. `is_last` false: a later message is known to have ended it."""
    progress = _Progress(task, moment=moment, is_over=not is_last)
    with tenant_scope(task.thread.tenant_id):
        standing = [conversation.standing_of(task.thread.session_id)] if is_last else []
        entries = chronicle_after(task.thread.session_id, task.seq)
    steps: list[Step] = [*entries, *standing]
    for step in steps:
        for _ in progress.updates_of(step):
            pass
    return progress


class _Progress:
    """What came of a task so far, and the updates that tell the next step of it."""

    def __init__(self, task: Task, *, moment: datetime | None = None, is_over: bool = False) -> None:
        self._task, self._moment, self._is_ended = task, moment, is_over
        self._artifacts: dict[str, dict[str, Any]] = {}
        self._is_answered = self._is_over = False
        self._standing: Standing | None = None

    @property
    def cards(self) -> Any:
        return self._standing.cards if self._standing and not self._is_over else ()

    @property
    def prompts(self) -> Any:
        return self._standing.prompts if self._standing and not self._is_over else ()

    @property
    def state(self) -> str:
        """Of an earlier task only that it has ended: what is open now belongs to the newest."""
        standing = self._standing
        if self._is_ended:
            return COMPLETED
        if standing is None or (not self._is_over and standing.is_pending):
            return WORKING
        if self._is_over:
            return COMPLETED
        if standing.prompts:
            return INPUT_REQUIRED
        if standing.cards:
            return AUTH_REQUIRED
        awaits_person = standing.owner == Owner.HUMAN and not self._is_answered
        return WORKING if awaits_person or standing.is_working() else COMPLETED

    def task(self) -> dict[str, Any]:
        return {
            "id": self._task.id,
            "contextId": self._task.context_id,
            "status": self._status(self._waits_for()),
            "artifacts": list(self._artifacts.values()),
        }

    def end(self) -> dict[str, Any]:
        return self._update("statusUpdate", status=self._status(self._waits_for()))

    def updates_of(self, step: Step) -> Iterator[dict[str, object]]:
        match step:
            case Delta() if not self._is_over:
                yield self._artifact(f"turn-{step.turn}", step.text, grows=True)
            case Standing():
                self._standing = step
            case ChronicleEntry():
                yield from self._entry(step)
            case Call() | Delta():
                pass

    def _entry(self, entry: ChronicleEntry) -> Iterator[dict[str, object]]:
        self._is_over = self._is_over or _is_asked(entry)
        if self._is_over:
            return
        if entry.kind == EntryKind.MESSAGE:
            self._is_answered = True
            artifact_id = f"turn-{entry.turn}" if entry.turn else f"entry-{entry.seq}"
            yield self._artifact(artifact_id, entry.text, grows=False)
        elif entry.kind == EntryKind.STATUS:
            parts = [{"text": entry.text}, {"data": entry.payload}]
            yield self._update("statusUpdate", status=self._status(parts, state=WORKING))

    def _artifact(self, artifact_id: str, text: str, *, grows: bool) -> dict[str, object]:
        """A piece is appended; the recorded text replaces what was shown while it grew."""
        piece = {"artifactId": artifact_id, "parts": [{"text": text}]}
        appends = grows and artifact_id in self._artifacts
        before = self._artifacts[artifact_id]["parts"][0]["text"] if appends else ""
        self._artifacts[artifact_id] = {**piece, "parts": [{"text": before + text}]}
        return self._update("artifactUpdate", artifact=piece, append=appends, lastChunk=not grows)

    def _update(self, kind: str, **fields: Any) -> dict[str, object]:
        return {kind: {"taskId": self._task.id, "contextId": self._task.context_id, **fields}}

    def _status(self, parts: list[dict[str, object]], *, state: str = "") -> dict[str, object]:
        moment = (self._moment or now()).isoformat()
        status: dict[str, object] = {"state": state or self.state, "timestamp": moment}
        if parts:
            message = {"messageId": f"{self._task.id}.{moment}", "role": "ROLE_AGENT", "parts": parts}
            status["message"] = {**message, "taskId": self._task.id, "contextId": self._task.context_id}
        return status

    def _waits_for(self) -> list[dict[str, object]]:
        """What the other agent has to answer, with the ids to answer by."""
        parts: list[dict[str, object]] = []
        for prompt in self.prompts:
            options = prompt.payload["options"]
            asked = {"id": str(prompt.pk), "options": options, "allow_freetext": prompt.payload["allow_freetext"]}
            parts += [{"text": prompt.payload["question"]}, {"data": asked}]
        for card in self.cards:
            facts = {"id": str(card.pk), "kind": card.kind, "risk": card.risk, "payload_hash": card.payload_hash}
            expires = {"expires_at": card.expires_at.isoformat()}
            parts += [{"text": gettext("Waiting for approval")}, {"data": facts | expires}]
        return parts


def _stream(asked: _Request, task: Task, waits_for: frozenset[UUID], *, follows_work: bool) -> HttpResponseBase:
    run = conversation.reserve_run(asked.http, task.thread, task.seq, waits_for, follows_work=follows_work)
    content = _events(asked, task, run)
    return StreamingHttpResponse(content, content_type="text/event-stream", headers=STREAM_HEADERS)


async def _events(asked: _Request, task: Task, run: Run) -> AsyncIterator[str]:
    """The task as it stands, then its updates, then its state."""
    progress = _Progress(task)
    yield _line(_success(asked.rpc_id, {"task": progress.task()}))
    steps = conversation.follow(run)
    try:
        async for step in steps:
            if step is None:
                yield ": waiting\n\n"
                continue
            for update in progress.updates_of(step):
                yield _line(_success(asked.rpc_id, update))
        yield _line(_success(asked.rpc_id, progress.end()))
    except Exception as error:  # noqa: BLE001 (the response has begun: the client is told of any failure)
        yield _line(_failure(asked.rpc_id, error))
    finally:
        await steps.aclose()


async def _answer(asked: _Request, task: Task, run: Run) -> AsyncIterator[str]:
    """One JSON answer, once the task has ended or waits; until then spaces, which JSON allows before it."""
    progress = _Progress(task)
    steps = conversation.follow(run)
    try:
        async for step in steps:
            if step is None:
                yield " "
                continue
            for _ in progress.updates_of(step):
                pass
        yield json.dumps(_success(asked.rpc_id, {"task": progress.task()}))
    except Exception as error:  # noqa: BLE001 (as above)
        yield json.dumps(_failure(asked.rpc_id, error))
    finally:
        await steps.aclose()


def _line(content: Mapping[str, object]) -> str:
    return f"data: {json.dumps(content)}\n\n"


def _success(rpc_id: str | int | None, result: Mapping[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": rpc_id, "result": result}


def _failure(rpc_id: str | int | None, error: Exception) -> dict[str, object]:
    """A refusal of ours has its code as the reason, as in the REST API."""
    described: dict[str, object]
    if isinstance(error, serializers.ValidationError):
        error = invalid(*error.detail)
    if isinstance(error, RpcError):
        described = {"code": error.code, "message": str(error)}
    elif isinstance(error, SilasError):
        codes = {ErrorCode.NOT_FOUND: _NO_TASK, ErrorCode.INVALID: _INVALID_PARAMS}
        details = {name: str(value) for name, value in error.extra.items()}
        info = {"@type": _ERROR_INFO, "reason": str(error.code).upper(), "domain": "silas", "metadata": details}
        described = {"code": codes.get(error.code, _REFUSED), "message": error.message, "data": [info]}
    else:
        _log.error("a2a_call_failed error=%s", error_location(error))
        message = gettext("Something went wrong. Your message was kept; send it again with the same messageId.")
        described = {"code": -32603, "message": message}
    return {"jsonrpc": "2.0", "id": rpc_id, "error": described}
