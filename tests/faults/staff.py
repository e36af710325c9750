"""A member of staff at the console: logged in, pressing buttons, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from tests.faults.house import TENANT, Answer, Web


class Staff:
    """`person`: user name and password; else the demo's own member of that role."""

    def __init__(self, web: Callable[[], Web], role: str = "", *, person: tuple[str, str] | None = None) -> None:
        self.web = web
        self._cookies: dict[str, str] = {}
        self._get("/console/login/")
        username, password = person or (f"{role}@{TENANT}.example", f"{role}-of-{TENANT}")
        assert self.press("/console/login/", username=username, password=password) == 302

    def press(self, path: str, **fields: str) -> int:
        """The status that came back."""
        body = urlencode({**fields, "csrfmiddlewaretoken": self._cookies["csrftoken"]}).encode()
        return self._ask("POST", path, body).status

    def take_over(self, session_id: str) -> int:
        return self.press(f"/console/inbox/{session_id}/take-over/")

    def face_of(self, card_id: object) -> str:
        """Open the card's page; what it shows, as its press says; "" where nothing can be pressed any more.

        Raises: OSError, the page did not come.
        """
        page = self._ask("GET", f"/console/review/{card_id}/", None)
        if page.status >= 500:
            raise OSError(f"the card's page answered {page.status}")
        found = re.search(rb'name="face" value="([0-9a-f]{64})"', page.body)
        return found.group(1).decode() if found else ""

    def approve(self, card_id: object, face: str | None = None) -> int:
        """Press on a page that is open already, if `face` is given."""
        shown = self.face_of(card_id) if face is None else face
        meant = {"choice": "approve", "confirmed": "approve", "slid": "100", "face": shown}
        return self.press(f"/console/review/{card_id}/decision/", **meant)

    def _get(self, path: str) -> int:
        return self._ask("GET", path, None).status

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        answer = self.web().ask(method, path, body=body, headers=headers)
        for line in answer.headers.get_all("Set-Cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            self._cookies[name] = value
        return answer
