"""A first real call."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering, secrets
from mailing import look

answering(lambda: {"success": True, "latency_ms": look(secrets().get("password", ""))})
