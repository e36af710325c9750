"""What does the calendar hold on a day?"""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import Failure, answer, secrets
from silas_skill.caldav import Calendar

try:
    day = json.loads(Path("/sandbox/work/call.json").read_text())["args"]["day"]
    answer(day=day, events=Calendar(secrets().get("password", "")).events(day)[:50])
except Failure as failure:
    answer(refused=failure.fields["message"])
