"""A first real call with the key."""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering, secrets
from calling import look

answering(lambda: {"success": True, "latency_ms": look(secrets().get("api_key", ""))})
