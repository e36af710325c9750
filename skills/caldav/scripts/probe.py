"""A first real call."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering, secrets
from dav import Calendar

answering(lambda: {"success": True, "latency_ms": Calendar(secrets().get("password", "")).open()[1]})
