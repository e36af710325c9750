"""What does an iCalendar text say? Read apart from the scripts that wrote it."""

import re


def described(text):
    lines = re.sub(r"\r?\n[ \t]", "", text).replace("\r\n", "\n").split("\n")
    within = lines[lines.index("BEGIN:VEVENT") : lines.index("END:VEVENT")] if "BEGIN:VEVENT" in lines else []
    fields = {line.split(":")[0].split(";")[0]: line.partition(":")[2] for line in within}
    title = re.sub(r"\\([,;\\])", r"\1", fields.get("SUMMARY", ""))
    return {"title": title, "start": fields.get("DTSTART", ""), "end": fields.get("DTEND", "")}
