"""What every check of this desk does: read what was asked for, and the rows as they are in the database now."""

import json
from pathlib import Path

ROOT = Path("/sandbox")


def calls_of(tool):
    return [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == tool]


def rows_of(book):
    return {row["key"]: row["data"] for row in json.loads((ROOT / f"records/{book}.json").read_text())}
