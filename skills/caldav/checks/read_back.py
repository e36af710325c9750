"""Prints `there` when what the server gave back is the appointment that was asked for."""

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, "/sandbox/skill/checks")
from reading import described

ROOT = Path("/sandbox")


def is_there(args, found):
    begins = datetime.fromisoformat(args["start"])
    ends = begins + timedelta(minutes=args["minutes"])
    return found == {"title": args["title"], "start": f"{begins:%Y%m%dT%H%M%S}", "end": f"{ends:%Y%m%dT%H%M%S}"}


calls = [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == "create_event"]
left = ROOT / "artifacts/event.ics"
found = described(left.read_bytes().decode()) if left.is_file() else {}
print("there" if calls and any(is_there(args, found) for args in calls) else "not there")
