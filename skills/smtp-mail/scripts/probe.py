"""A first real call."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from mailing import look

from silas_skill.account import answer_once, secrets

answer_once(lambda: {"success": True, "latency_ms": look(secrets().get("password", ""))})
