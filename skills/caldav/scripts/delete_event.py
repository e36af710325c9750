"""Take out one appointment that was made here, and look whether it is gone."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill import caldav
from silas_skill.account import Failure, answer, secrets


def main():
    event = json.loads(Path("/sandbox/work/call.json").read_text())["args"]["event"]
    calendar = caldav.Calendar(secrets().get("password", ""))
    try:
        calendar.open()
    except Failure as failure:
        answer(refused=failure.fields["message"])
    # What fails from here on fails the run: then nobody knows what has been done.
    calendar.delete(event)
    Path("/sandbox/out/gone.json").write_text(json.dumps({event: not calendar.read(event)}))
    answer(event=event, gone=True)


main()
