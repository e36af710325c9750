"""Make one appointment, read it back from the server, and leave what was read."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill import caldav
from silas_skill.account import Failure, answer, secrets


def main():
    call = json.loads(Path("/sandbox/work/call.json").read_text())
    args, event = call["args"], caldav.name_of(call.get("effect_key") or call["now"])
    calendar = caldav.Calendar(secrets().get("password", ""))
    try:
        calendar.open()
    except Failure as failure:
        answer(refused=failure.fields["message"])
    # What fails from here on fails the run: then nobody knows what has been done.
    calendar.put(event, caldav.written(event, args["title"], args["start"], args["minutes"], call["now"]))
    Path("/sandbox/out/event.ics").write_text(calendar.read(event), newline="")
    answer(event=event, title=args["title"], start=args["start"])


main()
