"""Prints `gone` when the server has no such appointment any more."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
calls = [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == "delete_event"]
left = ROOT / "artifacts/gone.json"
gone = json.loads(left.read_text()) if left.is_file() else {}
print("gone" if calls and all(gone.get(args["event"]) for args in calls) else "not gone")
