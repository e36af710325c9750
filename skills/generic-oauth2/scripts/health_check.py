"""Does the connection work, and how long will its token hold?"""

import sys

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
from calling import look

from silas_skill.account import answer_once


def check():
    _, spent, warnings, until = look()
    return {"healthy": True, "token_expires_at": until, "latency_ms": spent, "warnings": warnings}


answer_once(check)
