"""Does the key still work?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from listing import look

from silas_skill.account import answer_once, secrets

answer_once(lambda: {"healthy": True, "latency_ms": look(secrets().get("secret_access_key", ""))})
