"""Which list of conversations does an address ask for, and which address asks for it? What makes no sense is left out.

The same words stand in the address of the list, of a conversation opened from it and of every form there, so that
nobody loses their place by a press.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from apps.sessions.inbox.enums import Shown
from apps.sessions.inbox.queries import TABS, Asked, Place
from apps.sessions.inbox.search import LONGEST


def asked_by(given: Mapping[str, str]) -> Asked:
    """The list that these parameters of an address mean. `tab=bot` is what `status=bot` was called once. Who searches
    without naming a status looks everywhere."""
    words = given.get("q", "").replace("\0", "").strip()[:LONGEST]
    tab, status = given.get("tab", ""), given.get("status", "")
    usual = Shown.BOT if tab == "bot" else Shown.ANY if words else Shown.ACTIVE
    assignee = given.get("assignee", "")
    return Asked(
        tab=tab if tab in TABS else "all",
        shown=Shown(status) if status in Shown.values else usual,
        label=_uuid(given.get("label", "")),
        deployment=_uuid(given.get("deployment", "")),
        assignee=assignee if assignee == "nobody" or _uuid(assignee) else "",
        queue=given.get("queue", "").replace("\0", "")[:80],
        level=given.get("level", "").replace("\0", "")[:40],
        words=words,
        before=_place(given.get("before", "")),
    )


def address_part(asked: Asked, **changed: Any) -> str:
    """What follows the question mark; a change of anything but the place begins again at the newest."""
    return urlencode(parts(replace(asked, **({"before": None} | changed))))


def parts(asked: Asked) -> dict[str, str]:
    """What has to be said of it in an address; what is as usual is not."""
    said = {
        "tab": asked.tab,
        "status": str(asked.shown),
        "label": asked.label,
        "deployment": asked.deployment,
        "assignee": asked.assignee,
        "queue": asked.queue,
        "level": asked.level,
        "q": asked.words,
        "before": asked.before,
    }
    usual = Shown.ANY if asked.words else Shown.ACTIVE
    if asked.shown == usual:
        said["status"] = ""
    return {name: str(value) for name, value in said.items() if value}


def narrowing(asked: Asked) -> dict[str, str]:
    """What stays when other words are searched for, or none; who chose no state searches in all of them."""
    is_chosen = asked.shown not in (Shown.ANY, Shown.ACTIVE) or (asked.shown == Shown.ACTIVE and bool(asked.words))
    kept = parts(replace(asked, words="", before=None, shown=Shown.ACTIVE))
    return kept | ({"status": str(asked.shown)} if is_chosen else {})


def is_narrowed(asked: Asked) -> bool:
    return any((asked.label, asked.deployment, asked.assignee, asked.queue, asked.level))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _place(text: str) -> Place | None:
    at, _, pk = text.rpartition("_")
    found = _uuid(pk)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return Place(moment, found) if found and moment.tzinfo else None
