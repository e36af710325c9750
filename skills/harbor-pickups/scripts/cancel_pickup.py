"""Take one pickup out of the calendar, and say so in the books."""

import json
import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from desk import ask_for, leave, opened, read_book, read_call, refuse

from silas_skill.account import answer


def main():
    number = read_call()["args"]["pickup"]
    row = read_book("pickups").get(number)
    if row is None or row["data"]["status"] != "booked":
        refuse(f"I cannot find {number} among your pickups.")
    event = row["data"]["event"]
    held = opened("cancelled")
    held.delete(event)
    leave("gone.json", json.dumps({number: not held.read(event)}))
    ask_for({"book": "pickups", "key": number, "revision": row["revision"], "set": {"status": "cancelled"}})
    answer(say=f"The pickup {number} is cancelled.", pickup=number)


main()
