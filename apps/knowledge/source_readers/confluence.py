"""Read the current pages of a space of Confluence Cloud (REST API v2, cursors in `_links.next`).

`location` is the key of the space. The account's address is the site's, such as `https://acme.atlassian.net`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.http_client import ApiClient, objects, text_of
from apps.knowledge.source_readers.port import Content, Entry

LOCATION = re.compile(r"\A~?[A-Za-z0-9_.-]{1,255}\Z")
_API = "/wiki/api/v2"


class ConfluenceReader:
    def __init__(self, account: SourceAccount, location: str) -> None:
        self._client, self._space = ApiClient(account), location
        self._site = self._client.origin + "/wiki"

    def entries(self) -> Iterator[Entry]:
        path: str = f"{_API}/spaces/{self._space_id()}/pages?depth=all&status=current&limit=100"
        for _ in http_client.each_page():
            answer = self._client.json(path)
            if answer is None:
                raise http_client.missing()
            for page in objects(answer, "results"):
                yield self._entry(page)
            path = text_of(_child(answer, "_links"), "next")
            if not path:
                return
            if not path.startswith(_API + "/"):
                raise http_client.unreadable()

    def read(self, entry: Entry) -> Content | None:
        page = self._client.json(f"{_API}/pages/{quote(entry.id, safe='')}", {"body-format": "export_view"})
        if page is None or text_of(page, "status") == "trashed":
            return None
        view = _child(_child(page, "body"), "export_view")
        return Content(text_of(view, "value").encode(), "text/html")

    def is_deleted(self, entry_id: str) -> bool:
        return True

    def _space_id(self) -> str:
        answer = self._client.json(f"{_API}/spaces", {"keys": self._space, "limit": 1})
        if answer is None:
            raise http_client.missing()
        for space in objects(answer, "results"):
            if text_of(space, "key").casefold() == self._space.casefold() and text_of(space, "id").isdigit():
                return text_of(space, "id")
        raise http_client.missing()

    def _entry(self, page: dict[str, object]) -> Entry:
        web = text_of(_child(page, "_links"), "webui")
        return Entry(
            text_of(page, "id"),
            text_of(_child(page, "version"), "number"),
            text_of(page, "title"),
            self._site + web if web.startswith("/") else "",
            "text/html",
        )


def _child(item: dict[str, object], name: str) -> dict[str, object]:
    found = item.get(name)
    return found if isinstance(found, dict) else {}
