"""A program that calls the REST API, or a member who does so in their login session."""

from __future__ import annotations

from typing import Any

from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser


class Api:
    """A client with an API key of these scopes, or in the session of a member."""

    def __init__(self, tenant: Any, *scopes: KeyScope, member: Any = None) -> None:
        self._client, self._headers, self.actor = browser(member), dict[str, str](), f"user:{getattr(member, 'pk', '')}"
        if member is None:
            with tenant_scope(tenant):
                made = create_api_key("Test", scopes=scopes)
            self._headers, self.actor = {"authorization": f"Bearer {made.key}"}, f"api_key:{made.row.pk}"

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(path, query, headers=self._headers)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        given = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return getattr(self._client, method)(path, body, content_type="application/json", headers=given)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("post", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("patch", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.send("put", path, body, **headers)

    def delete(self, path: str) -> Any:
        return self.send("delete", path)

    def upload(self, path: str, data: dict[str, Any], method: str = "post") -> Any:
        body = encode_multipart(BOUNDARY, data)
        return self._client.generic(method.upper(), path, body, content_type=MULTIPART_CONTENT, headers=self._headers)


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]
