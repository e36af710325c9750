"""Where the customer's orders are, or the one they name."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, chosen_orders, pounds, read_book, read_call


def in_words(row):
    data = row["data"]
    refunded = f" {pounds(data['refunded'])} of it was refunded." if data["refunded"] else ""
    return f"Order {row['key']} ({', '.join(data['items'])}, {pounds(data['total'])}) {data['where']}.{refunded}"


found = chosen_orders(read_book("orders"), read_call()["args"].get("order"))
if not found:
    answer(say="There is no order in your name.", orders=[])
answer(
    say=" ".join(in_words(row) for row in found),
    orders=[{"order": row["key"], **row["data"]} for row in found],
)
