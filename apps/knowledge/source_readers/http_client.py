"""Call the interface of a source's service: its own host only, in bounds of size and time, as often as it allows.

The host is checked as for tool servers: public and over https, or a private place that the operator allows by
`SILAS_EGRESS_PRIVATE`. No redirect is followed, because the account's secret is in every request.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers.port import MAX_BYTES, TOO_LARGE, EntryFailed, SourceFailed
from kernel.http.allowed import address_problem, is_allowed_private
from kernel.http.fetch import FetchFailed, Response, send
from kernel.stored_texts import stored_text
from kernel.unicode_safety import replace_unstorable

# For all requests of one client together: a service that is slow or never ends must not hold the worker.
MOST_SECONDS = 360.0
_SECONDS = 30.0
_TRIES = 4
_LONGEST_WAIT = 30.0
_MAX_PAGES = 200
_AGENT = "SilasReader/1"

# Makes the headers that sign a request: of its method, URL and body.
Signer = Callable[[str, str, bytes], Mapping[str, str]]


class ApiClient:
    """Sends requests below the account's address, for `MOST_SECONDS` from when it is made. `headers` are sent with
    each, beside those that authorize it."""

    def __init__(
        self, account: SourceAccount, *, headers: Mapping[str, str] | None = None, sign: Signer | None = None
    ) -> None:
        self._base = account.base_url.rstrip("/")
        if not self._base or address_problem(self._base):
            raise SourceFailed("unreachable", stored_text("The address of the account is not a public https address."))
        parts = urlsplit(self._base)
        self.origin, self.host = f"{parts.scheme}://{parts.netloc}", parts.netloc
        self._give_up = time.monotonic() + MOST_SECONDS
        self._headers = {"User-Agent": _AGENT, **(headers or {})}
        self._sign: Signer = sign or (lambda method, url, body: authorization(account))

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Response:
        """GET a path of the service; the answer's status is 200, 404 or 410. Raises `SourceFailed`, `EntryFailed`."""
        return self._request("GET", self._url(path, query), b"", MAX_BYTES)

    def json(
        self,
        path: str,
        query: Mapping[str, str | int] | None = None,
        *,
        post: Mapping[str, object] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> dict[str, Any] | None:
        """The object that the service answers with; None if it says that there is no such thing."""
        body = json.dumps(post).encode() if post is not None else b""
        answer = self._request("GET" if post is None else "POST", self._url(path, query), body, max_bytes)
        return None if answer.status != 200 else parse_object(answer.body)

    def _url(self, path: str, query: Mapping[str, str | int] | None) -> str:
        return self._base + path + (("&" if "?" in path else "?") + urlencode(query) if query else "")

    def _request(self, method: str, url: str, body: bytes, max_bytes: int) -> Response:
        waited = 0.0
        for attempt in range(_TRIES):
            answer = self._send(method, url, body, max_bytes)
            if not _is_limited(answer):
                return _check_status(answer)
            wait = _wait_seconds(answer, attempt)
            if attempt == _TRIES - 1 or waited + wait > _LONGEST_WAIT:
                break
            self._check_time(wait)
            time.sleep(wait)
            waited += wait
        raise SourceFailed(
            "rate_limited", stored_text("The service limits how often it may be asked. Try again later.")
        )

    def _check_time(self, wait: float = 0.0) -> float:
        """The seconds that are left after waiting. Raises `SourceFailed` if none are."""
        left = self._give_up - time.monotonic() - wait
        if left <= 0:
            raise SourceFailed("too_slow", stored_text("The server took too long."))
        return left

    def _send(self, method: str, url: str, body: bytes, max_bytes: int) -> Response:
        seconds = min(_SECONDS, self._check_time())
        headers = {**self._headers, **self._sign(method, url, body)}
        if body:
            headers["Content-Type"] = "application/json"
        try:
            return send(
                method,
                url,
                headers=headers,
                body=body or None,
                max_bytes=max_bytes,
                seconds=seconds,
                allow_private=is_allowed_private(self._base),
            )
        except FetchFailed as failed:
            if failed.code == "too_large":
                raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE) from None
            raise SourceFailed("unreachable", stored_text("The service could not be reached.")) from None


def authorization(account: SourceAccount) -> dict[str, str]:
    """The header that authorizes a request: an OAuth token, or a key as the account's settings say.

    A key behind `Basic ` that holds a colon is a name and a password, and is encoded as RFC 7617 says.
    """
    if token := account.secrets.get("access_token"):
        return {"Authorization": f"Bearer {token}"}
    key, prefix = account.secrets.get("api_key", ""), str(account.settings.get("prefix", "Bearer "))
    if prefix.strip().lower() == "basic" and ":" in key:
        key, prefix = b64encode(key.encode()).decode(), "Basic "
    return {str(account.settings.get("header") or "Authorization"): prefix + key}


def parse_object(body: bytes) -> dict[str, object]:
    """Raises `SourceFailed("answer_unreadable")` for anything but a JSON object."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise unreadable()
    return answer


def objects(answer: Mapping[str, object], name: str) -> Iterator[dict[str, Any]]:
    """The objects of a list in an answer. Raises `SourceFailed` if there is no such list: an answer of another form
    must not pass for an empty one."""
    found = answer.get(name)
    if not isinstance(found, list):
        raise unreadable()
    yield from (item for item in found if isinstance(item, dict))


def text_of(item: Mapping[str, object], name: str) -> str:
    """A text or a number of an answer as text that can be stored, "" for anything else."""
    value = item.get(name)
    return replace_unstorable(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def each_page() -> Iterator[int]:
    """Numbers of the pages of a listing; a service that never ends one is stopped."""
    yield from range(_MAX_PAGES)
    raise too_many()


def too_many() -> SourceFailed:
    return SourceFailed(
        "too_many_entries", stored_text("This is more than one source can hold. Choose a smaller part of it.")
    )


def unreadable() -> SourceFailed:
    return SourceFailed("answer_unreadable", stored_text("The service answered with something that can't be read."))


def missing() -> SourceFailed:
    return SourceFailed(
        "location_missing", stored_text("The service doesn't have this location, or it isn't shared with the account.")
    )


def _is_limited(answer: Response) -> bool:
    return answer.status in (429, 503) or (answer.status == 403 and b"ateLimitExceeded" in answer.body[:4000])


def _wait_seconds(answer: Response, attempt: int) -> float:
    asked = answer.headers.get("retry-after", "")
    return float(asked[:6]) if asked.isascii() and asked.isdigit() else float(2**attempt)


def _check_status(answer: Response) -> Response:
    if answer.status in (200, 404, 410):
        return answer
    if answer.status == 401:
        words = stored_text("The service refused the account's credentials. Reconnect the account.")
        raise SourceFailed("credentials_refused", words)
    if answer.status == 403:
        words = stored_text("The service denied access. Check what the account may read.")
        raise SourceFailed("access_denied", words)
    raise SourceFailed("unreachable", stored_text("The service answered {status:d}.").format(status=answer.status))
