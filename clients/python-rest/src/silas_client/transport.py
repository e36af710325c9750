"""Send requests to the REST API and turn its refusals into exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx2


class ApiError(Exception):
    """A refusal. `code` is one of the documented error codes, `status` the HTTP status, `extra` the details by name."""

    def __init__(self, status: int, code: str, message: str, extra: Mapping[str, Any]) -> None:
        super().__init__(f"{code}: {message}" if message else code)
        self.status, self.code, self.message, self.extra = status, code, message, extra


class Transport:
    """One connection pool to an installation at `url`, such as `https://desk.example`, with an API key `sk_…`.

    Close it with `close()`, or use it as a context manager. Not shared between threads while it is being closed.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0) -> None:
        self._http = httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @staticmethod
    def segment(value: object) -> str:
        """`value` as one segment of a path."""
        return quote(str(value), safe="")

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
        form: Mapping[str, Any] | None = None,
    ) -> Any:
        """The decoded JSON of a success, None without content. Raises `ApiError`."""
        answer = self._send(method, path, query=query, headers=headers, body=body, form=form)
        return answer.json() if answer.content else None

    def read(self, method: str, path: str, **request: Any) -> bytes:
        """The content of a success as it came, such as a file. Raises `ApiError`."""
        return self._send(method, path, **request).content

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
        form: Mapping[str, Any] | None = None,
    ) -> httpx2.Response:
        files, fields = _parts(form or {})
        answer = self._http.request(
            method,
            path,
            params=_given(query or {}),
            headers=_given(headers or {}),
            json=body,
            data=fields or None,
            files=files or None,
        )
        if not answer.is_success:
            raise _error(answer)
        return answer


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _parts(form: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(files, fields): a file is bytes, an open file, or `(name, content)`."""
    files = {name: value for name, value in form.items() if not isinstance(value, (str, int, float, bool))}
    return files, {name: value for name, value in form.items() if name not in files}


def _error(answer: httpx2.Response) -> ApiError:
    try:
        said = answer.json()["error"]
        return ApiError(answer.status_code, said["code"], said.get("message", ""), said.get("extra") or {})
    except (ValueError, KeyError, TypeError):
        return ApiError(answer.status_code, "no_code", answer.text[:200], {})
