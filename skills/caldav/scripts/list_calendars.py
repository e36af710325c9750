"""Which calendars are there?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import Failure, answer, secrets
from silas_skill.caldav import Calendar

try:
    answer(calendars=Calendar(secrets().get("password", "")).siblings())
except Failure as failure:
    answer(refused=failure.fields["message"])
