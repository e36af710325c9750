"""Services that a source reads, for tests: small servers made after the published descriptions of their interfaces.

Each has `documents` that a test changes, lists two at a time, wants `token`, and answers 429 as often as `limited`
says.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from apps.knowledge.enums import SourceKind
from apps.knowledge.ports import SourceAccount

AT_ONCE = 2
TOKEN = "a-good-token"


@dataclass(frozen=True)
class Doc:
    title: str
    text: str
    version: int = 1
    kind: str = "text"
    trashed: bool = False


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]


Answer = tuple[int, str, bytes]


@dataclass
class Service:
    """`origin` is where it is served; `broken` makes it answer with a page for people."""

    origin: str = ""
    documents: dict[str, Doc] = field(default_factory=dict)
    token: str = TOKEN
    limited: int = 0
    retry_after: str = "0"
    broken: bool = False
    asked: list[Asked] = field(default_factory=list)

    kind: ClassVar[SourceKind]
    location: ClassVar[str]
    settings: ClassVar[dict[str, object]] = {}
    secret: ClassVar[str] = "api_key"

    def account(self) -> SourceAccount:
        return SourceAccount(self.origin, {"base_url": self.origin, **self.settings}, {self.secret: TOKEN})

    def write(self, document_id: str, text: str, **fields: Any) -> None:
        """Add a document, or change its text and version."""
        before = self.documents.get(document_id)
        title = fields.pop("title", before.title if before else f"About {document_id}")
        self.documents[document_id] = Doc(title, text, before.version + 1 if before else 1, **fields)

    def trash(self, document_id: str) -> None:
        self.documents[document_id] = replace(self.documents[document_id], trashed=True)

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def is_authorized(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == f"Bearer {self.token}"

    def page(self, after: str) -> tuple[list[tuple[str, Doc]], str]:
        """The next documents, and where to go on; "" at the end."""
        there = [(name, doc) for name, doc in sorted(self.documents.items()) if not doc.trashed]
        first = int(after or 0)
        following = first + AT_ONCE
        return there[first:following], str(following) if following < len(there) else ""

    def document(self, document_id: str) -> Doc | None:
        found = self.documents.get(document_id)
        return found if found is not None and not found.trashed else None


class Zendesk(Service):
    """https://developer.zendesk.com/api-reference/help_center/help-center-api/articles/; every locale has the same."""

    kind, location = SourceKind.ZENDESK, "en-us"

    def answer(self, asked: Asked) -> Answer:
        _, _, path = asked.path.removeprefix("/api/v2/help_center/").partition("/")
        if path == "articles":
            found, following = self.page(asked.query.get("page[after]", ""))
            meta = {"has_more": bool(following), "after_cursor": following, "before_cursor": None}
            return _json({"articles": [self._article(*one) for one in found], "meta": meta, "links": {}})
        document_id = path.removeprefix("articles/")
        doc = self.document(document_id)
        return _json({"article": self._article(document_id, doc)}) if doc else _json({"error": "RecordNotFound"}, 404)

    def _article(self, document_id: str, doc: Doc) -> dict[str, Any]:
        return {
            "id": int(document_id),
            "title": doc.title,
            "body": f"<p>{doc.text}</p>",
            "draft": False,
            "user_segment_id": 7 if doc.kind == "internal" else None,
            "updated_at": f"2026-01-01T00:00:{doc.version:02}Z",
            "html_url": f"https://help.example.com/articles/{document_id}",
        }


class Confluence(Service):
    """https://developer.atlassian.com/cloud/confluence/rest/v2/"""

    kind, location = SourceKind.CONFLUENCE, "HELP"

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/wiki/api/v2/spaces":
            spaces = [{"id": "77", "key": "HELP"}] if asked.query["keys"] == "HELP" else []
            return _json({"results": spaces, "_links": {}})
        if asked.path == "/wiki/api/v2/spaces/77/pages":
            found, following = self.page(asked.query.get("cursor", ""))
            links = {"next": f"/wiki/api/v2/spaces/77/pages?cursor={following}"} if following else {}
            return _json({"results": [self._page(*one) for one in found], "_links": links})
        document_id = asked.path.removeprefix("/wiki/api/v2/pages/")
        doc = self.document(document_id)
        if doc is None:
            return _json({"errors": [{"status": 404}]}, 404)
        body = {"export_view": {"value": f"<p>{doc.text}</p>", "representation": "export_view"}}
        return _json({**self._page(document_id, doc), "body": body})

    def _page(self, document_id: str, doc: Doc) -> dict[str, Any]:
        return {
            "id": document_id,
            "status": "current",
            "title": doc.title,
            "version": {"number": doc.version},
            "_links": {"webui": f"/spaces/HELP/pages/{document_id}"},
        }


class Notion(Service):
    """https://developers.notion.com/reference; pages in the trash are not found by search."""

    kind, location = SourceKind.NOTION, ""

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("notion-version") != "2022-06-28":
            return _json({"object": "error", "code": "missing_version"}, 400)
        if asked.path == "/v1/search":
            found, following = self.page(asked.body.get("start_cursor", ""))
            listed = [self._page(*one) for one in found]
            return _json({"results": listed, "has_more": bool(following), "next_cursor": following or None})
        _, _, what, document_id, *_ = asked.path.split("/")
        if what == "pages":
            doc = self.documents.get(document_id)
            return _json(self._page(document_id, doc)) if doc else _json({"code": "object_not_found"}, 404)
        doc = self.document(document_id)
        if doc is None:
            return _json({"code": "object_not_found"}, 404)
        blocks = [
            {"id": "b1", "type": "heading_2", "heading_2": _rich("More"), "has_children": False},
            {"id": "b2", "type": "paragraph", "paragraph": _rich(doc.text), "has_children": False},
            {"id": "b3", "type": "child_page", "child_page": {"title": "Elsewhere"}, "has_children": True},
        ]
        return _json({"results": blocks, "has_more": False, "next_cursor": None})

    def _page(self, document_id: str, doc: Doc) -> dict[str, Any]:
        return {
            "object": "page",
            "id": document_id,
            "last_edited_time": f"2026-01-01T00:{doc.version:02}:00.000Z",
            "archived": doc.trashed,
            "in_trash": doc.trashed,
            "url": f"https://www.notion.so/{document_id}",
            "properties": {"Name": {"type": "title", "title": [{"plain_text": doc.title}]}},
        }


class GoogleDrive(Service):
    """https://developers.google.com/drive/api/reference/rest/v3/files; a document is exported as Markdown."""

    kind, location, secret = SourceKind.GOOGLE_DRIVE, "root-folder", "access_token"

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/drive/v3/files":
            if asked.query["q"].startswith("'root-folder'"):
                found, following = self.page(asked.query.get("pageToken", ""))
                files = [self._file(*one) for one in found]
                return _json({"files": files, **({"nextPageToken": following} if following else {})})
            return _json({"files": []})
        document_id = asked.path.removeprefix("/drive/v3/files/").removesuffix("/export")
        if document_id == "root-folder":
            return _json({"id": document_id, "trashed": False})
        doc = self.document(document_id)
        if doc is None:
            return _json({"error": {"code": 404}}, 404)
        return 200, "text/markdown", doc.text.encode()

    def _file(self, document_id: str, doc: Doc) -> dict[str, Any]:
        kind = "drawing" if doc.kind == "foreign" else "document"
        return {
            "id": document_id,
            "name": doc.title,
            "mimeType": f"application/vnd.google-apps.{kind}",
            "modifiedTime": f"2026-01-01T00:00:{doc.version:02}.000Z",
            "webViewLink": f"https://docs.google.com/document/d/{document_id}",
        }


class S3(Service):
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html; only the key is checked."""

    kind, location, secret = SourceKind.S3, "docs/help/", "secret_access_key"
    settings: ClassVar[dict[str, object]] = {"access_key_id": TOKEN, "region": "eu-central-1"}

    def is_authorized(self, asked: Asked) -> bool:
        return f"Credential={self.token}/" in asked.headers.get("authorization", "")

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/docs":
            found, following = self.page(asked.query.get("continuation-token", ""))
            listed = "".join(
                f"<Contents><Key>help/{name}{self._ending(doc)}</Key><ETag>&quot;{doc.version}&quot;</ETag></Contents>"
                for name, doc in found
            )
            more = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
            text = f"<IsTruncated>{'true' if following else 'false'}</IsTruncated>{listed}{more}"
            return 200, "application/xml", f'<ListBucketResult xmlns="s3">{text}</ListBucketResult>'.encode()
        name = unquote(asked.path).removeprefix("/docs/help/").partition(".")[0]
        doc = self.document(name)
        return (200, "text/markdown", doc.text.encode()) if doc else (404, "application/xml", b"<Error/>")

    def _ending(self, doc: Doc) -> str:
        return ".docx" if doc.kind == "foreign" else ".md"


SERVICES: tuple[type[Service], ...] = (Zendesk, Confluence, Notion, GoogleDrive, S3)


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else {}
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            self._send(*_answer(service, Asked(self.command, parts.path, query, headers, body)))

        do_POST = do_GET

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status == 429:
                self.send_header("Retry-After", service.retry_after)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                """The reader has had enough."""

        def log_message(self, *_: Any) -> None:
            """Quiet: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(service: Service, asked: Asked) -> Answer:
    service.asked.append(asked)
    if service.limited:
        service.limited -= 1
        return _json({"message": "Too many requests"}, 429)
    if not service.is_authorized(asked):
        return _json({"message": "Unauthorized"}, 401)
    if service.broken:
        return 200, "text/html", b"<h1>Maintenance</h1>"
    return service.answer(asked)


def _json(value: dict[str, Any], status: int = 200) -> Answer:
    return status, "application/json", json.dumps(value).encode()


def _rich(text: str) -> dict[str, Any]:
    return {"rich_text": [{"type": "text", "plain_text": text}]}
