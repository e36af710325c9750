"""Ask for one change: the address of one policy. The address before stays on the row, so that it can be put back."""

import re
import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, ask_for, policy_of, read_book, read_call, refuse

POSTCODE = re.compile(r"\b[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}\b", re.IGNORECASE)

call = read_call()
number, address = call["args"]["policy"], " ".join(call["args"]["address"].split())
row = policy_of(read_book("policies"), number)
if row["data"]["status"] != "active":
    refuse(f"Policy {number} is not active, so its address cannot be changed here.")
if not POSTCODE.search(address):
    refuse("This address has no postcode that I can read.")
if address == row["data"]["address"]:
    refuse("This address is on the policy already.")
ask_for(
    {
        "book": "policies",
        "key": number,
        "revision": row["revision"],
        "set": {"address": address, "previous_address": row["data"]["address"], "address_since": call["now"][:10]},
    }
)
answer(
    say=f"The address on policy {number} is now {address}.",
    policy=number,
    address=address,
    previous=row["data"]["address"],
)
