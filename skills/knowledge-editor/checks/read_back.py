"""Do the documents read as was approved? What was put back reads as that version did."""

import json

with open("/sandbox/knowledge/pages.json") as file:
    every = json.load(file)


def is_as_approved(one):
    page, args = one["page"], one["args"]
    if page is None:
        return False
    if one["does"] in ("add", "change"):
        return page["text"] == args["text"] and page["title"] == args.get("title", page["title"])
    if one["does"] == "take_out":
        return page["text"] == ""
    return page["digest"] == one["wanted"]


print("as approved" if every and all(map(is_as_approved, every)) else "not as approved")
