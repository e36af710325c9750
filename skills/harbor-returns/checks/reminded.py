"""Prints `set` when every return has the reminder that was asked for last."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
calls = json.loads((ROOT / "call/calls.json").read_text())
wanted = {call["args"]["return"]: call["args"]["reminder"] for call in calls if call["tool"] == "remind_of_return"}
returns = {row["key"]: row["data"] for row in json.loads((ROOT / "records/returns.json").read_text())}
right = all(returns.get(number, {}).get("reminder") == reminder for number, reminder in wanted.items())
print("set" if wanted and right else "not set")
