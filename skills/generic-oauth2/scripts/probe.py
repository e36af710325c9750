"""A first real call: whose account is it?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from calling import look

from silas_skill.account import answer_once


def probe():
    found, spent, _, _ = look()
    name = found.get("email") or found.get("name") or found.get("sub") or ""
    return {"success": True, "identity": str(name)[:200], "latency_ms": spent}


answer_once(probe)
