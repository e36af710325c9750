"""Prints `cancelled` when the books say so, and the calendar has no such appointment any more."""

import json
import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import ROOT, calls_of, rows_of

left = ROOT / "artifacts/gone.json"
gone = json.loads(left.read_text()) if left.is_file() else {}
rows, numbers = rows_of("callbacks"), [args["callback"] for args in calls_of("cancel_callback")]
right = all(rows.get(number, {}).get("status") == "cancelled" for number in numbers) and numbers
print("cancelled" if right and gone.get(numbers[-1]) else "not cancelled")
