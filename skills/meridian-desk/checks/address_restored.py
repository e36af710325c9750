"""Prints `restored` when every policy has the address again that was put back last."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of

policies = rows_of("policies")
wanted = {args["policy"]: args["address"] for args in calls_of("restore_address")}
wrong = [policy for policy, address in wanted.items() if policies.get(policy, {}).get("address") != address]
print("restored" if wanted and not wrong else f"not restored: {', '.join(wrong) or 'nothing was asked for'}")
