"""A member who reads German reads no English on the console's pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from django.urls import NoReverseMatch, get_resolver, reverse

from apps.tenants.models import User
from tests.factories.console import browser

READ_ATTRIBUTES = {"title", "placeholder", "aria-label", "alt"}
# Words that no German sentence has.
ENGLISH = re.compile(
    r"\b(the|of|is|are|and|to|with|not|this|that|your|you|it|or|by|has|have|nothing|waiting|approval|add|save|cancel"
    r"|never|always|new|failed|what|when|who)\b",
    re.IGNORECASE,
)
# Codes of events that a webhook is sent, as its receiver reads them.
CODES = {"task.failed"}


class Page(HTMLParser):
    """Collects what a reader sees: text, and the attributes that browsers show or read out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [value for name, value in attrs if value and name in READ_ATTRIBUTES]
        self.silent += tag in ("script", "style", "code", "pre", "kbd", "svg")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("script", "style", "code", "pre", "kbd", "svg")

    def handle_data(self, data: str) -> None:
        if not self.silent and data.strip():
            self.texts.append(" ".join(data.split()))


def _addresses() -> list[str]:
    found = []
    for name in sorted(name for name in get_resolver().reverse_dict if str(name).startswith("console-")):
        try:
            found.append(reverse(name))
        except NoReverseMatch:
            continue
    return found


def test_pages_without_a_subject_are_german(owner: Any) -> None:
    User.objects.filter(pk=owner.pk).update(language="de")
    owner.refresh_from_db()
    member, english, pages = browser(owner), {}, 0
    for address in _addresses():
        answer = member.get(address, HTTP_ACCEPT_LANGUAGE="de")
        if answer.status_code != 200 or "html" not in answer.get("Content-Type", ""):
            continue
        page = Page()
        page.feed(answer.content.decode())
        pages += 1
        found = [text for text in dict.fromkeys(page.texts) if text not in CODES and ENGLISH.search(text)]
        if found:
            english[address] = found
    assert english == {}
    assert pages > 30
