"""Read pages of Notion that are shared with an integration, as Markdown made of their blocks (API 2022-06-28).

`location` is the id of a database, whose pages are read; empty for every page that is shared. Notion's search may lack
pages, so a page that is not listed is asked for before it counts as deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.http_client import ApiClient, objects, text_of
from apps.knowledge.source_readers.port import MAX_BYTES, TOO_LARGE, Content, Entry, EntryFailed

LOCATION = re.compile(r"([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?\Z")
_DEPTH = 4
_BLOCKS, _REQUESTS = 5000, 500
_MARKS = {
    "heading_1": "# ",
    "heading_2": "## ",
    "heading_3": "### ",
    "bulleted_list_item": "- ",
    "numbered_list_item": "1. ",
    "to_do": "- ",
    "toggle": "",
    "quote": "> ",
    "callout": "> ",
    "paragraph": "",
}
# Their content belongs to pages of their own.
_PAGES_OF_THEIR_OWN = ("child_page", "child_database")


@dataclass
class _Page:
    """The lines of a page, and how many requests and blocks they took."""

    lines: list[str] = field(default_factory=list)
    requests: int = 0
    blocks: int = 0

    def count(self, *, requests: int = 0, blocks: int = 0) -> None:
        self.requests, self.blocks = self.requests + requests, self.blocks + blocks
        if self.requests > _REQUESTS or self.blocks > _BLOCKS:
            raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE)


class NotionReader:
    def __init__(self, account: SourceAccount, location: str) -> None:
        self._client = ApiClient(account, headers={"Notion-Version": "2022-06-28"})
        self._database = location

    def entries(self) -> Iterator[Entry]:
        path = f"/v1/databases/{self._database}/query" if self._database else "/v1/search"
        asked: dict[str, object] = {"page_size": 100}
        if not self._database:
            asked["filter"] = {"property": "object", "value": "page"}
        for _ in http_client.each_page():
            answer = self._client.json(path, post=asked)
            if answer is None:
                raise http_client.missing()
            for page in objects(answer, "results"):
                if not _is_in_trash(page):
                    yield _entry(page)
            if not answer.get("has_more"):
                return
            asked["start_cursor"] = text_of(answer, "next_cursor")

    def read(self, entry: Entry) -> Content | None:
        page = _Page()
        if not self._append_blocks(entry.id, page, depth=0):
            return None
        body = "\n".join(page.lines).encode()
        if len(body) > MAX_BYTES:
            raise EntryFailed(TOO_LARGE, ProblemCode.TOO_LARGE)
        return Content(body, "text/markdown")

    def is_deleted(self, entry_id: str) -> bool:
        page = self._client.json(f"/v1/pages/{quote(entry_id, safe='')}")
        return page is None or _is_in_trash(page)

    def _append_blocks(self, block_id: str, page: _Page, *, depth: int) -> bool:
        """Append the lines of the blocks below this one; False if it is gone."""
        query: dict[str, str | int] = {"page_size": 100}
        while True:
            page.count(requests=1)
            answer = self._client.json(f"/v1/blocks/{quote(block_id, safe='')}/children", query)
            if answer is None:
                return False
            for block in objects(answer, "results"):
                page.count(blocks=1)
                kind = text_of(block, "type")
                page.lines.extend(_lines(block, kind, depth))
                if block.get("has_children") and depth < _DEPTH and kind not in _PAGES_OF_THEIR_OWN:
                    self._append_blocks(text_of(block, "id"), page, depth=depth + 1)
            if not answer.get("has_more"):
                return True
            query["start_cursor"] = text_of(answer, "next_cursor")


def _entry(page: dict[str, object]) -> Entry:
    properties = page.get("properties")
    title = ""
    for value in properties.values() if isinstance(properties, dict) else ():
        if isinstance(value, dict) and value.get("type") == "title":
            title = _plain(value.get("title"))
    return Entry(text_of(page, "id"), text_of(page, "last_edited_time"), title, text_of(page, "url"), "text/markdown")


def _is_in_trash(page: dict[str, object]) -> bool:
    return page.get("archived") is True or page.get("in_trash") is True


def _lines(block: dict[str, object], kind: str, depth: int) -> Iterator[str]:
    content = block.get(kind)
    if not isinstance(content, dict):
        return
    if kind == "table_row":
        cells = content.get("cells")
        yield "| " + " | ".join(_plain(cell) for cell in cells) + " |" if isinstance(cells, list) else ""
    elif kind == "code":
        yield f"```\n{_plain(content.get('rich_text'))}\n```"
    elif text := _plain(content.get("rich_text")):
        mark = _MARKS.get(kind, "")
        # Blocks below a list item are indented as Markdown wants it; everything else stands by itself.
        yield f"{'  ' * depth}{mark}{text}" if mark in ("- ", "1. ") else f"{mark}{text}\n"


def _plain(rich_text: object) -> str:
    parts = rich_text if isinstance(rich_text, list) else []
    return "".join(text_of(part, "plain_text") for part in parts if isinstance(part, dict))
