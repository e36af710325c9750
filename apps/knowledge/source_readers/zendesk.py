"""Read the articles of a Zendesk help center that everybody may read (Help Center API, cursor pagination).

`location` is a locale, such as `en-us`, and may name one category or section of it: `en-us/sections/123`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from apps.knowledge.ports import SourceAccount
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.http_client import ApiClient, objects, text_of
from apps.knowledge.source_readers.port import MAX_BYTES, Content, Entry

LOCATION = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*(/(categories|sections)/\d{1,20})?\Z")

# A listing holds the texts of its articles.
_MAX_LISTING = 3 * MAX_BYTES


class ZendeskReader:
    def __init__(self, account: SourceAccount, location: str) -> None:
        self._client = ApiClient(account)
        self._home = "/api/v2/help_center/" + location
        self._articles = f"/api/v2/help_center/{location.partition('/')[0]}/articles/"

    def entries(self) -> Iterator[Entry]:
        query: dict[str, str | int] = {"page[size]": 30}
        for _ in http_client.each_page():
            answer = self._client.json(f"{self._home}/articles", query, max_bytes=_MAX_LISTING)
            if answer is None:
                raise http_client.missing()
            for article in objects(answer, "articles"):
                if _is_public(article):
                    yield _entry(article)
            meta = answer.get("meta")
            if not isinstance(meta, dict) or not meta.get("has_more"):
                return
            query["page[after]"] = text_of(meta, "after_cursor")

    def read(self, entry: Entry) -> Content | None:
        answer = self._client.json(self._articles + quote(entry.id, safe=""))
        if answer is None:
            return None
        article = answer.get("article")
        if not isinstance(article, dict):
            raise http_client.unreadable()
        if not _is_public(article):
            return None
        return Content(text_of(article, "body").encode(), "text/html")

    def is_deleted(self, entry_id: str) -> bool:
        return True


def _is_public(article: dict[str, object]) -> bool:
    """Whether everybody may read it: an agent's token shows drafts and internal articles too."""
    return not (article.get("draft") or article.get("user_segment_id") or article.get("user_segment_ids"))


def _entry(article: dict[str, object]) -> Entry:
    version = text_of(article, "updated_at")
    return Entry(text_of(article, "id"), version, text_of(article, "title"), text_of(article, "html_url"), "text/html")
