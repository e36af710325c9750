"""Something is wrong: does the key work after all? Else a person has to enter a new one."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from calling import look

from silas_skill.account import answer_once, secrets

answer_once(lambda: {"success": True, "latency_ms": look(secrets().get("api_key", ""))})
