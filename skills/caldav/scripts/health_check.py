"""Does it still work?"""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering, secrets
from dav import Calendar

answering(lambda: {"healthy": True, "latency_ms": Calendar(secrets().get("password", "")).open()[1]})
