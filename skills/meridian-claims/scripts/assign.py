"""Ask for one change: the team of one claim. What stood there before is told, so that it can be put back."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
args = json.loads((ROOT / "work/call.json").read_text())["args"]
claims = {row["key"]: row for row in json.loads((ROOT / "records/claims.json").read_text())}
row = claims.get(args["claim"])
if row is None:
    print(json.dumps({"refused": f"I cannot find claim {args['claim']}."}))
else:
    before = row["data"].get("team", "none")
    change = {"book": "claims", "key": row["key"], "revision": row["revision"], "set": {"team": args["team"]}}
    (ROOT / "out/changes.json").write_text(json.dumps([change]))
    print(json.dumps({"say": f"Claim {row['key']} is with the team {args['team']}.", "before": before}))
