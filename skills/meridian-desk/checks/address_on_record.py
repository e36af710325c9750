"""Prints `changed` when every policy has the address that was asked for."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of

policies, calls = rows_of("policies"), calls_of("update_address")
wrong = [
    args["policy"]
    for args in calls
    if policies.get(args["policy"], {}).get("address") != " ".join(args["address"].split())
]
print("changed" if calls and not wrong else f"not changed: {', '.join(wrong) or 'nothing was asked for'}")
