"""Guarded calls: the only way to a side effect (contract autonomy C).

`guarded_call` is for everything that a handler carries out. A model run is made by `call_model`, or by its caller
between `admit` and `settle` or `charge`. The other functions open, halt and close runs, and set limits on spending,
what happens at them, and prices of models.
"""

from apps.guard.services.admission import admit, record_unoffered_tool
from apps.guard.services.budgets import remove_budget, resume_spending, set_budget
from apps.guard.services.gate_judge import GateJudge
from apps.guard.services.guarded_calls import guarded_call
from apps.guard.services.model_calls import NotAdmitted, call_model
from apps.guard.services.policy import change_spending_policy, spending_policy
from apps.guard.services.prices import remove_price, set_price
from apps.guard.services.runs import close_run, copy_mark, enter_phase, halt, open_run, record_mark
from apps.guard.services.settlement import abandon_calls, charge, handle_lost_calls, mark_lost_calls, settle

__all__ = [
    "GateJudge",
    "NotAdmitted",
    "abandon_calls",
    "admit",
    "call_model",
    "change_spending_policy",
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
    "remove_price",
    "resume_spending",
    "set_budget",
    "set_price",
    "settle",
    "spending_policy",
]
