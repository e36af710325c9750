"""What visitors do beside talking, for tests: offers of a deployment, and a browser that holds a visitor's token."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.access import tokens
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors import offers, proactive_messages
from apps.visitors.models import ProactiveMessage
from kernel.tenancy import tenant_scope
from tests.factories.sessions import visitor_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
FILES = {"pictures": True, "pdfs": True, "texts": True, "office": True}


def offer(deployment: Deployment, **fields: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        offers.change(deployment, actor="user:test", **fields)


def ask(deployment: Deployment, *questions: dict[str, Any]) -> list[str]:
    """Ask these before the first word; the questions' ids."""
    with tenant_scope(deployment.tenant_id):
        return [str(row.pk) for row in offers.change_form(deployment, questions, actor="user:test")]


class Browser:
    """A visitor's browser in one conversation; with an empty token, before it has one."""

    def __init__(self, deployment: Deployment, session: ChatSession, **environment: Any) -> None:
        self.deployment, self.session = deployment, session
        self.client = Client(**environment)
        self.token = tokens.mint(visitor_of(deployment, session.pk))

    def get(self, path: str) -> Any:
        return self.client.get(self._at(path), headers=self._headers)

    def post(self, path: str, body: Any) -> Any:
        return self.client.post(self._at(path), body, content_type="application/json", headers=self._headers)

    def put(self, path: str, body: Any) -> Any:
        return self.client.put(self._at(path), body, content_type="application/json", headers=self._headers)

    def send(self, name: str, data: bytes, *, client_id: str = "f1", media_type: str = "image/png") -> Any:
        body = {"file": SimpleUploadedFile(name, data, content_type=media_type), "client_id": client_id}
        return self.client.post(self._at("files"), body, headers=self._headers)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def _at(self, path: str) -> str:
        return f"/api/v1/widget/{self.deployment.public_key}/{path}"


def packed(entries: Mapping[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP of these."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", how) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return made.getvalue()


def docx(more: Mapping[str, bytes] | None = None, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    return packed({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w/>", **(more or {})}, how)


def paragraphs(*texts: str, after: str = "") -> bytes:
    """The main part of a Word document that says this."""
    said = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    return f'<w:document xmlns:w="urn:w"><w:body>{said}{after}</w:body></w:document>'.encode()


def xlsx(sheet: bytes, *strings: str) -> bytes:
    """A workbook with one sheet, whose cells may refer to these texts."""
    shared = "".join(f"<si><t>{text}</t></si>" for text in strings)
    parts = {"xl/workbook.xml": b"<workbook/>", "xl/worksheets/sheet1.xml": sheet}
    return packed(
        {"[Content_Types].xml": b"<Types/>", "xl/sharedStrings.xml": f"<sst>{shared}</sst>".encode(), **parts}
    )


def refused(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def make_proactive_message(deployment: Deployment, **fields: Any) -> ProactiveMessage:
    """An active message for every page."""
    with tenant_scope(deployment.tenant_id):
        what = {"text": "Questions about our prices?", "is_active": True, **fields}
        return proactive_messages.create(deployment, actor="user:test", **what)
