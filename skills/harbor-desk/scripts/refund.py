"""Ask for one refund: a row in the ledger and the order's new sum, together or not at all.

The ledger number comes from the call, so that a call repeated cannot pay twice.
"""

import hashlib
import sys
from decimal import Decimal

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, ask_for, pounds, read_book, read_call, refuse

call = read_call()
args, amount = call["args"], Decimal(call["args"]["amount"])
orders = read_book("orders")
if args["order"] not in orders:
    refuse(f"I cannot find {args['order']} among your orders.")
order = orders[args["order"]]
left = Decimal(order["data"]["total"]) - Decimal(order["data"]["refunded"])
if amount != amount.quantize(Decimal("0.01")) or amount <= 0:
    refuse("A refund is a sum in pounds and pence.")
if order["data"]["status"] != "delivered":
    refuse(f"Order {order['key']} has not been delivered, so there is nothing to refund yet.")
if amount > left:
    refuse(f"Only {pounds(left)} of order {order['key']} is left to refund.")

number = f"RF-{int(hashlib.sha256(call['effect_key'].encode()).hexdigest(), 16) % 10**10:010d}"
ask_for(
    {
        "book": "orders",
        "key": order["key"],
        "revision": order["revision"],
        "set": {"refunded": Decimal(order["data"]["refunded"]) + amount},
    },
    {
        "book": "refunds",
        "key": number,
        "subject": call["customer"],
        "create": {"order": order["key"], "amount": amount, "reason": args["reason"], "day": call["now"][:10]},
    },
)
answer(say=f"{pounds(amount)} for order {order['key']} are on their way to the card you paid with.", refund=number)
