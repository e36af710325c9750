"""Import large libraries at their first use: one thread at a time.

The modules of pydantic-ai and of the MCP SDK import each other in circles. Of two threads that begin with different
ones of them both fail with `ImportError`, so whoever may be the first in a process holds this lock. Not while a module
is loaded: a thread that waits for the lock then holds that module's own.
"""

from __future__ import annotations

import threading

FIRST_IMPORTS = threading.RLock()
