"""Ask for one new claim on an active policy of the policyholder.

Its number comes from the call, so that a call repeated cannot file it twice.
"""

import hashlib
import sys
from datetime import date

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, ask_for, policy_of, read_book, read_call, refuse

call = read_call()
args, today = call["args"], call["now"][:10]
policy = policy_of(read_book("policies"), args["policy"])
if policy["data"]["status"] != "active":
    refuse(f"Policy {policy['key']} is not active, so no claim can be filed on it here.")
if date.fromisoformat(args["incident_date"]).isoformat() > today:
    refuse("That day has not come yet.")
if args["incident_date"] < policy["data"]["since"]:
    refuse(f"Policy {policy['key']} began on {policy['data']['since']}, after that day.")

number = f"CL-{int(hashlib.sha256(call['effect_key'].encode()).hexdigest(), 16) % 10**8:08d}"
ask_for(
    {
        "book": "claims",
        "key": number,
        "subject": call["customer"],
        "create": {
            "policy": policy["key"],
            "cause": "reported in the chat",
            "description": args["description"],
            "incident": args["incident_date"],
            "filed": today,
            "status": "received",
            "next_step": "A claims handler will write to you within two working days.",
        },
    }
)
answer(
    say=f"Your claim has the number {number}. A claims handler will write to you within two working days.", claim=number
)
