"""Prints `all` when no return waits for its parcel without a reminder, else how many do."""

import json
from pathlib import Path

returns = [row["data"] for row in json.loads(Path("/sandbox/records/returns.json").read_text())]
left = [data for data in returns if data["where"].startswith("has a label") and data.get("reminder", "none") == "none"]
print(f"{len(left)} without a reminder" if left else "all")
