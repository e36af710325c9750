"""Prints `filed` when every claim that was asked for is on record, open, with the same policy, day and words."""

import sys

sys.path.insert(0, "/sandbox/skill/checks")
from outside import calls_of, rows_of

claims, calls = list(rows_of("claims").values()), calls_of("file_claim")


def is_on_record(args):
    wanted = (args["policy"], args["incident_date"], args["description"])
    return any((data["policy"], data["incident"], data.get("description")) == wanted for data in claims)


print("filed" if calls and all(is_on_record(args) for args in calls) else "not filed")
