"""Which calendars are there?"""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import Failure, answer, secrets
from dav import Calendar

try:
    answer(calendars=Calendar(secrets().get("password", "")).siblings())
except Failure as failure:
    answer(refused=failure.told["message"])
