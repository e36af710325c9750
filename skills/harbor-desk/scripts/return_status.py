"""How far the customer's returns are, or the one of the order they name."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, chosen_orders, read_book, read_call

named = read_call()["args"].get("order")
chosen_orders(read_book("orders"), named)
found = [row for row in read_book("returns").values() if named in (None, row["data"]["order"])]
if not found:
    answer(say="There is no return in your name." if not named else f"There is no return for {named}.", returns=[])
answer(
    say=" ".join(f"Return {row['key']} of order {row['data']['order']} {row['data']['where']}." for row in found),
    returns=[{"return": row["key"], **row["data"]} for row in found],
)
