"""Prints `balanced` when every order's refunded sum is the sum of its ledger rows, and no more than was paid."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of


def pence(amount):
    return round(float(amount) * 100)


orders, refunds = rows_of("orders"), rows_of("refunds").values()
touched = {args["order"] for args in calls_of("refund")}


def adds_up(number):
    order = orders.get(number)
    paid_back = sum(pence(data["amount"]) for data in refunds if data["order"] == number)
    return order is not None and pence(order["refunded"]) == paid_back <= pence(order["total"])


print("balanced" if touched and all(adds_up(number) for number in touched) else "not balanced")
