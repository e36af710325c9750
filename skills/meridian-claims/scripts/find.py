"""Open claims that no team sees to. The kind of policy says which team it is; of any other kind nobody is sure."""

import json
from pathlib import Path

RECORDS = Path("/sandbox/records")
TEAMS = {"HM": "home", "MO": "motor", "TR": "travel"}


def rows_of(book):
    return json.loads((RECORDS / f"{book}.json").read_text())


products = {row["key"]: row["data"]["product"] for row in rows_of("policies")}


def found(row):
    data, team = row["data"], TEAMS.get(row["data"]["policy"][:2])
    return {
        "tool": "assign_claim",
        "args": {"claim": row["key"], "team": team or "home"},
        "subject": row["subject"],
        "occurred_at": f"{data['filed']}T00:00:00Z",
        "reason": f"{data['cause']}; {products.get(data['policy'], 'no policy of ours')} {data['policy']}"[:500],
        "confidence": 0.96 if team else 0.3,
    }


def is_open(data):
    return data["status"] != "paid" and data.get("team", "none") == "none"


print(json.dumps({"found": [found(row) for row in rows_of("claims") if is_open(row["data"])][:50]}))
