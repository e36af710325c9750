"""Ask for one change: whether a return is on the list of tonight's reminders. What stood there before is told, so that
it can be put back."""

import json
from pathlib import Path

ROOT = Path("/sandbox")
args = json.loads((ROOT / "work/call.json").read_text())["args"]
returns = {row["key"]: row for row in json.loads((ROOT / "records/returns.json").read_text())}
row = returns.get(args["return"])
if row is None:
    print(json.dumps({"refused": f"I cannot find return {args['return']}."}))
else:
    before = row["data"].get("reminder", "none")
    change = {"book": "returns", "key": row["key"], "revision": row["revision"], "set": {"reminder": args["reminder"]}}
    (ROOT / "out/changes.json").write_text(json.dumps([change]))
    when = "goes out tonight" if args["reminder"] == "tonight" else "is off the list"
    print(json.dumps({"say": f"The reminder of return {row['key']} {when}.", "before": before}))
