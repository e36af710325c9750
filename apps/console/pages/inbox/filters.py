"""The list of conversations that an address asks for, and the address of a list.

The same parameters are part of the address of the list, of a conversation opened from it and of every form there, so
that members keep their place. Values that mean nothing are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from apps.inbox.enums import Shown, Sort
from apps.inbox.queries import TABS, Asked
from apps.inbox.search import LONGEST
from kernel.ids import parse_id


def list_query(parameters: Mapping[str, str]) -> Asked:
    """Return the list that these parameters ask for.

    `tab=bot` is an old form of `status=bot`. A search without a status covers every status.
    """
    words = parameters.get("q", "").replace("\0", "").strip()[:LONGEST]
    tab, status = parameters.get("tab", ""), parameters.get("status", "")
    default = Shown.BOT if tab == "bot" else Shown.ANY if words else Shown.ACTIVE
    assignee = parameters.get("assignee", "")
    return Asked(
        tab=tab if tab in TABS else "all",
        shown=Shown(status) if status in Shown.values else default,
        label=parse_id(parameters.get("label", "")),
        team=parse_id(parameters.get("team", "")),
        deployment=parse_id(parameters.get("deployment", "")),
        assignee=assignee if assignee == "nobody" or parse_id(assignee) else "",
        queue=parameters.get("queue", "").replace("\0", "")[:80],
        level=parameters.get("level", "").replace("\0", "")[:40],
        words=words,
        before=parameters.get("before", ""),
        unread=parameters.get("unread") == "1",
        overdue=parameters.get("overdue") == "1",
        sort=Sort.DUE if parameters.get("sort") == Sort.DUE else Sort.ACTIVITY,
    )


def query_string(query: Asked, **changes: Any) -> str:
    """Return the query string of the list with these changes; any change starts at the newest conversation."""
    return urlencode(parameters_of(replace(query, **({"before": ""} | changes))))


def parameters_of(query: Asked) -> dict[str, str]:
    """Return the parameters that differ from the default list."""
    values = {
        "tab": query.tab,
        "status": str(query.shown),
        "label": query.label,
        "team": query.team,
        "deployment": query.deployment,
        "assignee": query.assignee,
        "queue": query.queue,
        "level": query.level,
        "q": query.words,
        "unread": "1" if query.unread else "",
        "overdue": "1" if query.overdue else "",
        "sort": "" if query.sort == Sort.ACTIVITY else query.sort,
        "before": query.before,
    }
    default = Shown.ANY if query.words else Shown.ACTIVE
    if query.shown == default:
        values["status"] = ""
    return {name: str(value) for name, value in values.items() if value}


def saved_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a list that a saved view keeps. Raises `ValueError` for one that means nothing; no view
    begins in the middle of a list."""
    query = list_query(parameters)
    read = parameters_of(query) | {"status": str(query.shown)}
    if "before" in parameters or any(value and read.get(name) != value for name, value in parameters.items()):
        raise ValueError
    return kept_parameters(query)


def kept_parameters(query: Asked) -> dict[str, str]:
    """Return what a saved view keeps of this list: the parameters that differ from the whole list."""
    values = parameters_of(replace(query, before=""))
    return {name: value for name, value in values.items() if (name, value) != ("tab", "all")}


def parameters_without_search(query: Asked) -> dict[str, str]:
    """Return the parameters to keep when the search words change; a status is kept only if it was chosen."""
    is_chosen = query.shown not in (Shown.ANY, Shown.ACTIVE) or (query.shown == Shown.ACTIVE and bool(query.words))
    kept = parameters_of(replace(query, words="", before="", shown=Shown.ACTIVE))
    return kept | ({"status": str(query.shown)} if is_chosen else {})


def is_filtered(query: Asked) -> bool:
    """Whether something of the filter menu is chosen; what is beside it says so itself."""
    chosen = (query.label, query.team, query.deployment, query.assignee, query.queue, query.level)
    return any(chosen) or query.sort != Sort.ACTIVITY
