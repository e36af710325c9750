"""A first real call: whose account is it?"""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering
from calling import look


def probe():
    found, spent, _, _ = look()
    name = found.get("email") or found.get("name") or found.get("sub") or ""
    return {"success": True, "identity": str(name)[:200], "latency_ms": spent}


answering(probe)
