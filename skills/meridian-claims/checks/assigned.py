"""Prints `assigned` when every claim is with the team that was asked for last."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
calls = json.loads((ROOT / "call/calls.json").read_text())
wanted = {call["args"]["claim"]: call["args"]["team"] for call in calls if call["tool"] == "assign_claim"}
claims = {row["key"]: row["data"] for row in json.loads((ROOT / "records/claims.json").read_text())}
right = all(claims.get(claim, {}).get("team") == team for claim, team in wanted.items())
print("assigned" if wanted and right else "not assigned")
