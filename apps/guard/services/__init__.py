"""Guarded calls: the only way to a side effect (contract autonomy C).

`guarded_call` is for everything that a handler carries out. A model run is made by its caller, between `admit` and
`settle` or `charge`. The other functions open, halt and close runs, and set limits on spending.
"""

from apps.guard.services.admission import record_unoffered_tool
from apps.guard.services.budgets import remove_budget, resume_spending, set_budget, set_platform_budget
from apps.guard.services.gate_judge import GateJudge
from apps.guard.services.guarded_calls import guarded_call
from apps.guard.services.lost_calls import abandon_calls, handle_lost_calls, mark_lost_calls
from apps.guard.services.model_runs import admit, charge, settle
from apps.guard.services.runs import close_run, copy_mark, enter_phase, halt, open_run, record_mark

__all__ = [
    "GateJudge",
    "abandon_calls",
    "admit",
    "charge",
    "close_run",
    "copy_mark",
    "enter_phase",
    "guarded_call",
    "halt",
    "handle_lost_calls",
    "mark_lost_calls",
    "open_run",
    "record_mark",
    "record_unoffered_tool",
    "remove_budget",
    "resume_spending",
    "set_budget",
    "set_platform_budget",
    "settle",
]
