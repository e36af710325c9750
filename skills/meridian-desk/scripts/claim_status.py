"""How far the policyholder's claims are, or the one they name."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from desk import answer, read_book, read_call, refuse


def in_words(row):
    data = row["data"]
    return (
        f"Claim {row['key']} ({data['cause']}, {data['incident']}, policy {data['policy']}) is {data['status']}. "
        f"{data['next_step']}"
    )


call, claims = read_call(), read_book("claims")
named = call["args"].get("claim")
if named and named not in claims:
    refuse(f"I cannot find {named} among your claims.")
chosen = [claims[named]] if named else list(claims.values())
if not chosen:
    answer(say="There is no claim in your name.", claims=[])
answer(
    say=" ".join(in_words(row) for row in chosen),
    claims=[{"claim": row["key"], **row["data"]} for row in chosen],
)
