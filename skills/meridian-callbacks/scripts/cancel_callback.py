"""Take one callback out of the calendar, and say so in the books."""

import json
import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from desk import ask_for, leave, opened, read_book, read_call, refuse

from silas_skill.account import answer


def main():
    number = read_call()["args"]["callback"]
    row = read_book("callbacks").get(number)
    if row is None or row["data"]["status"] != "booked":
        refuse(f"I cannot find {number} among your callbacks.")
    event = row["data"]["event"]
    held = opened("cancelled")
    held.delete(event)
    leave("gone.json", json.dumps({number: not held.read(event)}))
    ask_for({"book": "callbacks", "key": number, "revision": row["revision"], "set": {"status": "cancelled"}})
    answer(say=f"The call {number} is cancelled.", callback=number)


main()
