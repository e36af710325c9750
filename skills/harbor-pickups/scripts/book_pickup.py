"""Book one pickup: in the calendar, read back from there, and in the books.

Its number and the event's come from the call, so that a call repeated books nothing twice.
"""

import hashlib
import sys
from datetime import datetime

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from desk import ask_for, leave, opened, read_book, read_call, refuse, spoken

from silas_skill import caldav
from silas_skill.account import answer

MINUTES = 15


def main():
    call = read_call()
    args = call["args"]
    if args["order"] not in read_book("orders"):
        refuse(f"I cannot find {args['order']} among your orders.")
    if any(is_for(row["data"], args["order"]) for row in read_book("pickups").values()):
        refuse(f"There is a pickup for {args['order']} already.")
    if not is_ahead(args["start"], call["now"]):
        refuse("That is no time that is still to come.")
    event = caldav.name_of(call["effect_key"])
    book(event, args, call["now"])
    number = f"PU-{int(hashlib.sha256(call['effect_key'].encode()).hexdigest(), 16) % 10**10:010d}"
    row = {"order": args["order"], "start": args["start"], "event": event, "status": "booked"}
    ask_for({"book": "pickups", "key": number, "subject": call["customer"], "create": row})
    said = "Your pickup of order {about} is booked for {when}.".format(about=args["order"], when=spoken(args["start"]))
    answer(say=said, pickup=number)


def book(event, args, now):
    held = opened("booked")
    title = "Pickup of {about}".format(about=args["order"])
    held.put(event, caldav.written(event, title, args["start"], MINUTES, now))
    leave("event.ics", held.read(event))


def is_for(data, about):
    return (data["order"], data["status"]) == (about, "booked")


def is_ahead(start, now):
    try:
        return datetime.fromisoformat(start) > datetime.fromisoformat(now).replace(tzinfo=None)
    except ValueError:
        return False


main()
