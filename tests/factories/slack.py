"""A stand-in for Slack's Web API, made after its documentation, and the calls that Slack makes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse

from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel
from apps.messengers.slack import adapter
from kernel.tenancy import tenant_scope
from tests.factories.messengers import make_channel

SECRET, TOKEN, TEAM, BOT = "8f742231b10e8888abcd99yyyzzz85a5", "xoxb-secret", "T1", "UBOT"


@dataclass
class Slack:
    """`calls`: each method with its body, in order. `refusals`: what the next calls answer instead, as an error of the
    Web API or as (status, headers)."""

    origin: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    refusals: list[str | tuple[int, dict[str, str]]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    # Another address than its own, and what was uploaded by the id of the file, as a multipart form.
    upload_url: str = ""
    uploads: dict[str, bytes] = field(default_factory=dict)
    _sent: dict[str, str] = field(default_factory=dict)

    def of(self, method: str) -> list[dict[str, Any]]:
        return [body for name, body in self.calls if name == method]

    @property
    def replies(self) -> list[str]:
        """What those who pressed a button were told."""
        return [body["text"] for body in self.of("response")]

    def answer(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        if method == "auth.test":
            return {"ok": True, "team_id": TEAM, "team": "Acme", "user": "helper", "user_id": BOT}
        if method == "chat.postMessage":
            channel = body["channel"] if not body["channel"].startswith("U") else f"D{body['channel']}"
            ts = self._sent.setdefault(body["client_msg_id"], f"{1_700_000_000 + len(self._sent)}.000100")
            return {"ok": True, "channel": channel, "ts": ts}
        if method == "files.getUploadURLExternal":
            return {"ok": True, "upload_url": self.upload_url or f"{self.origin}/upload/F1", "file_id": "F1"}
        return {"ok": True}


@contextmanager
def slack_server(port: int = 0) -> Iterator[Slack]:
    slack = Slack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.startswith("/upload/"):
                slack.uploads[self.path.rsplit("/", 1)[-1]] = raw
                self._send(403 if "Authorization" in self.headers else 200, {}, {})
                return
            body = json.loads(raw or b"{}")
            method = self.path.rsplit("/", 1)[-1]
            refusal = slack.refusals.pop(0) if slack.refusals else ""
            if isinstance(refusal, tuple):
                self._send(refusal[0], {}, refusal[1])
                return
            slack.calls.append((method, body))
            right = method == "response" or self.headers["Authorization"] == f"Bearer {TOKEN}"
            error = refusal or ("" if right else "invalid_auth")
            self._send(200, {"ok": False, "error": error} if error else slack.answer(method, body), {})

        def do_GET(self) -> None:
            content = slack.files.get(self.path, b"")
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if content else "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _send(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    slack.origin = f"http://127.0.0.1:{listener.server_address[1]}"
    try:
        with override_settings(CHANNEL_APIS={**settings.CHANNEL_APIS, "slack": f"{slack.origin}/api"}):
            yield slack
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def make_slack_channel(deployment: Any) -> Channel:
    channel = make_channel(deployment, ChannelKind.SLACK, token=TOKEN, signing_secret=SECRET)
    with tenant_scope(channel.tenant_id):
        channel.settings = {"team": TEAM, "bot_user": BOT}
        channel.save(update_fields=["settings"])
    return channel


def call_channel(
    channel: Channel, body: bytes, *, kind: str = "application/json", secret: str = SECRET, age: float = 0
) -> Any:
    moment = str(int(time.time() - age))
    headers = {
        "X-Slack-Request-Timestamp": moment,
        "X-Slack-Signature": adapter.signature(secret, moment, body),
    }
    url = reverse("channel-webhook", args=[channel.kind, channel.public_id])
    return Client().post(url, body, content_type=kind, headers=headers)


def say(channel: Channel, text: str, *, user: str = "U1", where: str = "", **event: Any) -> Any:
    """A message to the app: directly, or in the channel `where`."""
    place = {"type": "app_mention", "channel": where} if where else {"type": "message", "channel_type": "im"}
    told = {"channel": f"D{user}", "user": user, "ts": f"{time.time_ns() / 1e9:.6f}", "text": text, **place, **event}
    body = {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{uuid4().hex}", "event": told}
    return call_channel(channel, json.dumps(body).encode())


def press(
    slack: Slack,
    channel: Channel,
    value: str,
    *,
    user: str = "U1",
    message: tuple[str, str],
    thread: str = "",
    **more: Any,
) -> Any:
    """A press of a button in the message with this channel and timestamp."""
    told = {
        "type": "block_actions",
        "user": {"id": user, "team_id": TEAM},
        "container": {"channel_id": message[0], "message_ts": message[1], **({"thread_ts": thread} if thread else {})},
        "actions": [{"action_id": "a", "value": value, "action_ts": f"{time.time():.6f}"}],
        "response_url": f"{slack.origin}/response",
        **more,
    }
    body = urlencode({"payload": json.dumps(told)}).encode()
    return call_channel(channel, body, kind="application/x-www-form-urlencoded")
