"""Prints `taken` when the server took the mail that was asked for."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
calls = [call["args"] for call in json.loads((ROOT / "call/calls.json").read_text()) if call["tool"] == "send_mail"]
left = ROOT / "artifacts/taken.json"
taken = json.loads(left.read_text()) if left.is_file() else {}
right = any((taken.get("to"), taken.get("subject")) == (args["to"], args["subject"]) for args in calls)
print("taken" if right and taken.get("message_id") else "not taken")
