"""`python tools/simulate_placement.py`: how evenly 10,000 companies spread over database servers (ADR 142).

Sizes follow a power law (Pareto, exponent 1.1: a few companies have most rows). Companies are placed by a hash of their
id, as a sharding engine does, or by hand, each new one on the server with the fewest rows. Then every company grows for
a year by a factor of its own, and companies are moved until no server has a fifth more than the mean.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

COMPANIES, EXPONENT, SEED = 10_000, 1.1, 7
SERVERS = (2, 4, 8, 16)
TOLERATED = 1.2


def sizes(chance: random.Random) -> list[float]:
    """Shares of all rows, largest first."""
    drawn = sorted((chance.paretovariate(EXPONENT) for _ in range(COMPANIES)), reverse=True)
    whole = sum(drawn)
    return [size / whole for size in drawn]


def by_hash(count: int, servers: int, chance: random.Random) -> list[int]:
    return [chance.randrange(servers) for _ in range(count)]


def by_room(rows: Sequence[float], servers: int, chance: random.Random) -> list[int]:
    """Companies come in random order; each goes where there is most room."""
    loads, places = [0.0] * servers, [0] * len(rows)
    for company in chance.sample(range(len(rows)), len(rows)):
        place = loads.index(min(loads))
        places[company] = place
        loads[place] += rows[company]
    return places


def loads_of(rows: Sequence[float], places: Sequence[int], servers: int) -> list[float]:
    loads = [0.0] * servers
    for size, place in zip(rows, places, strict=True):
        loads[place] += size
    return loads


def imbalance(rows: Sequence[float], places: Sequence[int], servers: int) -> float:
    """The fullest server beside the mean."""
    return max(loads_of(rows, places, servers)) * servers / sum(rows)


def moves_to_balance(rows: Sequence[float], places: list[int], servers: int) -> tuple[int, float]:
    """Move the largest company that fits from the fullest server to the emptiest, until none is too full or nothing
    helps: how many moves, and the share of all rows that moved."""
    loads, moves, moved = loads_of(rows, places, servers), 0, 0.0
    mean = sum(rows) / servers
    while max(loads) > TOLERATED * mean:
        full, empty = loads.index(max(loads)), loads.index(min(loads))
        room = (loads[full] - loads[empty]) / 2
        fitting = [company for company, place in enumerate(places) if place == full and rows[company] <= room]
        if not fitting:
            break
        company = max(fitting, key=rows.__getitem__)
        places[company] = empty
        loads[full] -= rows[company]
        loads[empty] += rows[company]
        moves, moved = moves + 1, moved + rows[company]
    return moves, moved / sum(rows)


def main() -> None:
    chance = random.Random(SEED)  # noqa: S311 (a simulation)
    rows = sizes(chance)
    grown = [size * chance.lognormvariate(0.4, 0.8) for size in rows]
    print(
        f"largest company {rows[0]:.1%} of all rows, largest ten {sum(rows[:10]):.1%},"
        f" smallest half {sum(rows[5000:]):.1%}"
    )
    print("servers  hash: fullest/mean  by room: fullest/mean  after a year  moves  rows moved  after moves")
    for servers in SERVERS:
        hashed = imbalance(rows, by_hash(len(rows), servers, chance), servers)
        places = by_room(rows, servers, chance)
        placed, later = imbalance(rows, places, servers), imbalance(grown, places, servers)
        moves, moved = moves_to_balance(grown, places, servers)
        after = imbalance(grown, places, servers)
        print(f"{servers:7}  {hashed:18.2f}  {placed:21.2f}  {later:12.2f}  {moves:5}  {moved:10.1%}  {after:11.2f}")


if __name__ == "__main__":
    main()
