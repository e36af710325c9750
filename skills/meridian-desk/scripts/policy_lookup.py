"""The policyholder's policies, or the one they name."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, policy_of, read_book, read_call, refuse


def in_words(row):
    data = row["data"]
    return (
        f"{data['product']} {row['key']} is {data['status']}: cover up to £{data['cover']:,}, excess £{data['excess']}"
        f", renews on {data['renews']}, letters go to {data['address']}."
    )


call, policies = read_call(), read_book("policies")
named = call["args"].get("policy")
chosen = [policy_of(policies, named)] if named else list(policies.values())
if not chosen:
    refuse("There is no policy in your name.")
answer(
    say=" ".join(in_words(row) for row in chosen),
    policies=[{"policy": row["key"], **row["data"]} for row in chosen],
)
