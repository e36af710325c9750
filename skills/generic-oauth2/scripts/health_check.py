"""Does the connection work, and how long will its token hold?"""

import sys

sys.path.insert(0, "/sandbox/skill/scripts")
from account import answering
from calling import look


def check():
    _, spent, warnings, until = look()
    return {"healthy": True, "token_expires_at": until, "latency_ms": spent, "warnings": warnings}


answering(check)
