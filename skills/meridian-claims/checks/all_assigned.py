"""Prints `all` when every open claim has a team, else how many have none."""

import json
from pathlib import Path

claims = [row["data"] for row in json.loads(Path("/sandbox/records/claims.json").read_text())]
left = [data for data in claims if data["status"] != "paid" and data.get("team", "none") == "none"]
print(f"{len(left)} without a team" if left else "all")
