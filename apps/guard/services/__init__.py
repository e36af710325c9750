"""May this call happen, now, at this cost? The only door to a side effect (contract autonomy C).

`guarded_call` is for everything that a handler carries out; `admit` and `settle` are its two halves for a model run,
which its caller makes itself. Everything else opens, narrows, stops and closes runs.
"""

from apps.guard.services.door import guarded_call
from apps.guard.services.model_runs import admit, settle
from apps.guard.services.runs import close_run, halt, narrow, open_run
from apps.guard.services.upkeep import settle_lost_calls

__all__ = ["admit", "close_run", "guarded_call", "halt", "narrow", "open_run", "settle", "settle_lost_calls"]
