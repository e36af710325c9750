"""Ask for one change back: the address that stood on a policy before. Only while nobody has changed it again."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, ask_for, policy_of, read_book, read_call, refuse

call = read_call()
number, address, instead_of = (call["args"][name] for name in ("policy", "address", "instead_of"))
row = policy_of(read_book("policies"), number)
if row["data"]["address"] != instead_of:
    refuse(f"The address on policy {number} has been changed again since, so it stays.")
ask_for(
    {
        "book": "policies",
        "key": number,
        "revision": row["revision"],
        "set": {"address": address, "previous_address": instead_of, "address_since": call["now"][:10]},
    }
)
answer(say=f"The address on policy {number} is {address} again.", policy=number, address=address)
