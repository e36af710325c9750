"""What every script of this desk does: read its call and its rows, answer once, ask for changes."""

import json
from datetime import datetime
from pathlib import Path

from silas_skill.account import Failure, answer, secrets
from silas_skill.caldav import Calendar

ROOT = Path("/sandbox")


def read_call():
    return json.loads((ROOT / "work/call.json").read_text())


def read_book(name):
    """The rows that this run may see, by key."""
    return {row["key"]: row for row in json.loads((ROOT / f"records/{name}.json").read_text())}


def refuse(sentence):
    answer(refused=sentence)


def ask_for(*changes):
    """The platform applies these in one step, or nothing of them."""
    (ROOT / "out/changes.json").write_text(json.dumps(changes))


def leave(name, text):
    """For the check."""
    (ROOT / "out" / name).write_text(text, newline="")


def opened(what):
    """The calendar, when it answers. What fails later fails the whole run: then nobody knows what has been done."""
    held = Calendar(secrets().get("password", ""))
    try:
        held.open()
    except Failure:
        refuse(f"Our calendar cannot be reached at the moment, so nothing is {what}.")
    return held


def spoken(start):
    return f"{datetime.fromisoformat(start):%A %-d %B at %H:%M}"
