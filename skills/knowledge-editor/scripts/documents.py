"""Lists and shows documents; looks a change over. The change is what the call says, and the harness makes it."""

import json
import sys

SHOWN = 200


def read(name):
    with open(f"/sandbox/knowledge/{name}") as file:
        return json.load(file)


def refuse(reason):
    print(json.dumps({"refused": reason}))
    sys.exit(0)


with open("call.json") as file:
    call = json.load(file)
tool, args = call["tool"], call["args"]
if tool == "list_documents":
    found = read("documents.json")
    answer = {"documents": found[:SHOWN], "more": max(0, len(found) - SHOWN)}
elif tool == "add_document":
    there = {(each["collection"], each["title"]) for each in read("documents.json")}
    if (args["collection"], args["title"]) in there:
        refuse("There is a document of this title already.")
    answer = {"say": f"{args['title']} is added."}
else:
    page = read("page.json")
    if page is None:
        refuse("There is no such document here.")
    if tool == "read_document":
        answer = {**page, "text": page["text"][:15000], "is_whole": len(page["text"]) <= 15000}
    else:
        if page["version"] != args["version"]:
            refuse("This document was changed meanwhile; read it again.")
        if tool == "change_document" and page["text"] == args["text"]:
            refuse("The document says that already.")
        done = {"take_out_document": "taken out", "put_back_document": "put back"}.get(tool, "changed")
        answer = {"say": f"{page['title']} is {done}."}
print(json.dumps(answer))
