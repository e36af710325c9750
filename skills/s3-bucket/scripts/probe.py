"""A first real call with the key."""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from listing import look

from silas_skill.account import answer_once, secrets

answer_once(lambda: {"success": True, "latency_ms": look(secrets().get("secret_access_key", ""))})
