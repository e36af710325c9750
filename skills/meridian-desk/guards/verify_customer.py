"""Is there exactly one customer with this name and date of birth? The values come as environment variables only.

Prints `verified` with the customer's id, or `not verified`; never which of the two was wrong.
"""

import json
import os
import unicodedata
from pathlib import Path


def plain(name):
    """Without accents, case, punctuation and double spaces: how people write their own name."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(letter if letter.isalpha() else " " for letter in letters if not unicodedata.combining(letter))
    return kept.split()


wanted, born = plain(os.environ["CUSTOMER_NAME"]), os.environ["CUSTOMER_DOB"]
rows = json.loads(Path("/sandbox/records/customers.json").read_text())
found = [row for row in rows if row["data"]["born"] == born and plain(row["data"]["name"]) == wanted]
if wanted and len(found) == 1:
    print("verified")
    print(f"customer_id: {found[0]['key']}")
    print(f"customer_name: {found[0]['data']['name']}")
else:
    print("not verified")
