"""Import large libraries at their first use: one thread at a time.

The modules of pydantic-ai and of the MCP SDK import each other in circles. Of two threads that begin with different
ones of them both fail with `ImportError`, so code that may be the first in its process to import them holds this lock.
It is taken in functions only, never while a module is loaded: a thread that waited for it there would hold the lock of
that module.
"""

from __future__ import annotations

import threading

FIRST_IMPORTS = threading.RLock()
