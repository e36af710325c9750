"""Prints `refunded` when the ledger holds a refund for every one that was asked for: same order, sum and reason."""

import sys
from collections import Counter

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of


def line(order, amount, reason):
    return order, round(float(amount) * 100), reason


ledger = Counter(line(data["order"], data["amount"], data["reason"]) for data in rows_of("refunds").values())
wanted = Counter(line(args["order"], args["amount"], args["reason"]) for args in calls_of("refund"))
print("refunded" if wanted and wanted <= ledger else "not in the ledger")
