"""May this call happen, now, at this cost? The only door to a side effect (contract autonomy C).

`guarded_call` is for everything that a handler carries out; `admit` and `settle` are its two halves for a model run,
which its caller makes itself. Everything else opens, narrows, stops and closes runs, and sets limits on money.
"""

from apps.guard.services.admission import refuse_wish
from apps.guard.services.budgets import remove_budget, resume, set_budget, set_platform_budget
from apps.guard.services.door import guarded_call
from apps.guard.services.judges import GateJudge
from apps.guard.services.model_runs import admit, charge, settle
from apps.guard.services.runs import close_run, enter_phase, halt, keep_mark, narrow, open_run, pass_mark_on
from apps.guard.services.upkeep import give_up_calls, settle_lost, settle_lost_calls

__all__ = [
    "GateJudge",
    "admit",
    "charge",
    "close_run",
    "enter_phase",
    "give_up_calls",
    "guarded_call",
    "halt",
    "keep_mark",
    "narrow",
    "open_run",
    "pass_mark_on",
    "refuse_wish",
    "remove_budget",
    "resume",
    "set_budget",
    "set_platform_budget",
    "settle",
    "settle_lost",
    "settle_lost_calls",
]
