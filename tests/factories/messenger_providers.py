"""Providers of messengers, for tests: small servers made after the published descriptions of their interfaces.

Each keeps what it was asked in `asked`, refuses the next requests as `refusals` says, and holds `files`.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

from django.conf import settings
from django.test import override_settings

from apps.messengers.enums import ChannelKind


@dataclass(frozen=True)
class Asked:
    """`content` is the JSON, the form or the parts of the request."""

    method: str
    path: str
    headers: dict[str, str]
    content: dict[str, Any]


Answer = tuple[int, str, bytes]


@dataclass
class Provider:
    """`refusals`: a status and an answer each; `headers` go with every answer."""

    origin: str = ""
    asked: list[Asked] = field(default_factory=list)
    refusals: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    broken: bool = False

    kind: ClassVar[ChannelKind]

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError


class Telegram(Provider):
    """https://core.telegram.org/bots/api"""

    kind = ChannelKind.TELEGRAM
    token = "4711:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    webhook = ""

    def answer(self, asked: Asked) -> Answer:
        if asked.path.startswith(f"/file/bot{self.token}/"):
            return 200, "application/octet-stream", self.files[asked.path.rpartition("/")[2]]
        start, _, method = asked.path.rpartition("/")
        if start != f"/bot{self.token}":
            return _json({"ok": False, "error_code": 401, "description": "Unauthorized"}, 401)
        if method == "getMe":
            return _result({"id": 4711, "is_bot": True, "first_name": "Help", "username": "help_bot"})
        if method == "setWebhook":
            self.webhook = asked.content["url"]
        if method == "getWebhookInfo":
            return _result({"url": self.webhook})
        if method == "deleteWebhook":
            self.webhook = ""
        if method == "getFile":
            name = asked.content["file_id"]
            if len(self.files[name]) > 20_000_000:
                return _json({"ok": False, "error_code": 400, "description": "Bad Request: file is too big"}, 400)
            return _result({"file_id": name, "file_path": f"documents/{name}"})
        if method in ("sendMessage", "sendDocument"):
            sent = len([each for each in self.asked if "/send" in each.path])
            return _result({"message_id": sent, "chat": {"id": int(asked.content["chat_id"])}})
        return _json({"ok": True, "result": True})

    @property
    def texts(self) -> list[str]:
        return [each.content["text"] for each in self.asked if each.path.endswith("/sendMessage")]


class WhatsApp(Provider):
    """https://developers.facebook.com/docs/whatsapp/cloud-api; `room`: the template has a place for a text."""

    kind = ChannelKind.WHATSAPP
    number, token, room = "106540352242922", "EAAG-token", True
    values: ClassVar[dict[str, str]] = {
        "phone_number_id": number,
        "token": token,
        "app_secret": "app-secret",
        "verify_token": "verify-me",
    }

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return meta_error(190, 401)
        if asked.path.startswith("/media-of/"):
            return 200, "application/octet-stream", self.files[asked.path.removeprefix("/media-of/")]
        if asked.path == f"/{self.number}/media":
            return _json({"id": "uploaded"})
        if asked.path == f"/{self.number}/messages":
            if "components" in asked.content.get("template", {}) and not self.room:
                return meta_error(132000, 400)
            sent = len([each for each in self.asked if each.path.endswith("/messages")])
            return _json({"messaging_product": "whatsapp", "messages": [{"id": f"wamid.{sent}"}]})
        if asked.path == f"/{self.number}":
            return _json({"display_phone_number": "+49 30 123", "verified_name": "The Shop", "id": self.number})
        name = asked.path.removeprefix("/")
        if name not in self.files:
            return meta_error(100, 400)
        size = len(self.files[name]) if name != "unsized" else 0
        return _json({"id": name, "url": f"{self.origin}/media-of/{name}", "file_size": size})

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [each.content for each in self.asked if each.path.endswith("/messages")]


def meta_error(code: int, status: int) -> Answer:
    return _json({"error": {"message": "(#0)", "type": "OAuthException", "code": code, "fbtrace_id": "A"}}, status)


class Twilio(Provider):
    """https://www.twilio.com/docs/messaging/api/message-resource"""

    kind = ChannelKind.SMS
    account, token, number = "AC2a9f0c1b6d3e4f5a", "12345", "+4930123456"
    webhook = ""
    values: ClassVar[dict[str, str]] = {"account_sid": account, "token": token, "number": number}

    def answer(self, asked: Asked) -> Answer:
        basic = b64encode(f"{self.account}:{self.token}".encode()).decode()
        if asked.headers.get("authorization") != f"Basic {basic}":
            return _json({"code": 20003, "message": "Authenticate", "status": 401}, 401)
        path = asked.path.removeprefix(f"/2010-04-01/Accounts/{self.account}/")
        if path == "IncomingPhoneNumbers.json":
            known = [{"sid": "PN1", "sms_url": self.webhook}] if asked.content["PhoneNumber"] == self.number else []
            return _json({"incoming_phone_numbers": known})
        if path == "IncomingPhoneNumbers/PN1.json":
            self.webhook = asked.content["SmsUrl"]
            return _json({"sid": "PN1", "sms_url": self.webhook})
        if path == "Messages.json":
            if len(asked.content["Body"]) > 1600:
                return _json({"code": 21617, "message": "too long", "status": 400}, 400)
            return _json({"sid": f"SM{len(self.sent)}", "status": "queued"}, 201)
        return _json({"code": 20404, "message": "not found", "status": 404}, 404)

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [each.content for each in self.asked if each.path.endswith("/Messages.json")]


@contextmanager
def serving(provider: Provider, port: int = 0) -> Iterator[Provider]:
    """Serve it where the platform looks for it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            content = {**dict(parse_qsl(parts.query)), **_content(headers.get("content-type", ""), body)}
            self._send(*_answer(provider, Asked(self.command, parts.path, headers, content)))

        do_POST = do_GET

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in provider.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                """The caller has had enough."""

        def log_message(self, *_: Any) -> None:
            """Quiet: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    host = f"127.0.0.1:{server.server_address[1]}"
    provider.origin = f"http://{host}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    apis = {**settings.CHANNEL_APIS, provider.kind.value: provider.origin}
    try:
        with override_settings(CHANNEL_APIS=apis):
            yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(provider: Provider, asked: Asked) -> Answer:
    provider.asked.append(asked)
    if provider.refusals:
        status, content = provider.refusals.pop(0)
        return _json(content, status)
    if provider.broken:
        return 200, "text/html", b"<h1>Maintenance</h1>"
    return provider.answer(asked)


def _content(kind: str, body: bytes) -> dict[str, Any]:
    if kind.startswith("application/json"):
        return dict(json.loads(body))
    if kind.startswith("multipart/form-data"):
        parts = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=HTTP).iter_parts()
        named = {part.get_param("name", header="content-disposition"): part for part in parts}
        found: dict[str, Any] = {}
        for name, part in named.items():
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            found[str(name)] = (part.get_filename(), payload) if part.get_filename() else payload.decode()
        return found
    return dict(parse_qsl(body.decode(), keep_blank_values=True))


def _result(value: dict[str, Any]) -> Answer:
    return _json({"ok": True, "result": value})


def _json(value: dict[str, Any], status: int = 200) -> Answer:
    return status, "application/json", json.dumps(value).encode()
