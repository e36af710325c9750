"""Prints `changed` when every policy has the address that was asked for last."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of

policies = rows_of("policies")
wanted = {args["policy"]: " ".join(args["address"].split()) for args in calls_of("update_address")}
wrong = [policy for policy, address in wanted.items() if policies.get(policy, {}).get("address") != address]
print("changed" if wanted and not wrong else f"not changed: {', '.join(wrong) or 'nothing was asked for'}")
