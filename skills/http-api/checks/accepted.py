"""Prints `accepted` when the endpoint of the call answered that it took what was sent."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
calls = [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == "send_endpoint"]
left = ROOT / "artifacts/response.json"
told = json.loads(left.read_text()) if left.is_file() else {}
taken = 200 <= told.get("status", 0) < 300 and any(args["endpoint"] == told["endpoint"] for args in calls)
print("accepted" if taken else "not accepted")
