"""Something is wrong: does it work after all? Else a person has to enter a new password."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from silas_skill.account import answer_once, secrets
from silas_skill.caldav import Calendar

answer_once(lambda: {"success": True, "latency_ms": Calendar(secrets().get("password", "")).open()[1]})
