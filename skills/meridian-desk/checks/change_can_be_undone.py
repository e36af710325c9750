"""Prints `kept` when every changed policy still knows the address before, and which day it changed."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of

policies = rows_of("policies")
changed = [policies.get(args["policy"], {}) for args in calls_of("update_address")]
kept = [
    data.get("previous_address") not in (None, "", data.get("address")) and data.get("address_since")
    for data in changed
]
print("kept" if kept and all(kept) else "lost")
