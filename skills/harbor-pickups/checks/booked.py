"""Prints `booked` when the books and what the calendar gave back both say what was asked for."""

import sys
from datetime import datetime

sys.path.insert(0, "/sandbox/skill/checks")
from outside import ROOT, calls_of, rows_of
from reading import described

rows = [data for data in rows_of("pickups").values() if data["status"] == "booked"]
left = ROOT / "artifacts/event.ics"
found = described(left.read_bytes().decode()) if left.is_file() else {}


def is_booked(args):
    begins = f"{datetime.fromisoformat(args['start']):%Y%m%dT%H%M%S}"
    in_books = any((row["order"], row["start"]) == (args["order"], args["start"]) for row in rows)
    return in_books and found.get("start") == begins and args["order"] in found.get("title", "")


calls = calls_of("book_pickup")
print("booked" if calls and is_booked(calls[-1]) else "not booked")
