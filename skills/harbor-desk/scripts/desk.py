"""What every script of this desk does: read its call and its rows, answer once, ask for changes."""

import json
import sys
from decimal import Decimal
from pathlib import Path

ROOT = Path("/sandbox")


def read_call():
    """Numbers with a decimal point are read as money, never as binary fractions."""
    return json.loads((ROOT / "work/call.json").read_text(), parse_float=Decimal)


def read_book(name):
    """The rows that this run may see, by key."""
    rows = json.loads((ROOT / f"records/{name}.json").read_text(), parse_float=Decimal)
    return {row["key"]: row for row in rows}


def answer(**value):
    print(json.dumps(value, default=float))
    sys.exit(0)


def refuse(sentence):
    answer(refused=sentence)


def ask_for(*changes):
    """The platform applies these in one step, or nothing of them."""
    (ROOT / "out/changes.json").write_text(json.dumps(changes, default=float))


def pounds(amount):
    return f"£{Decimal(amount):,.2f}"


def chosen_orders(orders, named):
    if named and named not in orders:
        refuse(f"I cannot find {named} among your orders.")
    return [orders[named]] if named else list(orders.values())
