"""How does an agent report, and how does a person let it go on? Every write of this room, in one transaction each.

An expected no is a value (`Failure`), so that what it wrote down is committed with it. `principal` is whom
authentication found; `actor` is a person at the console.
"""

from apps.safety.services.challenges import claim_letter, verify_challenge
from apps.safety.services.confirming import confirm_operation
from apps.safety.services.executions import abort_execution, complete_execution, execute_agent
from apps.safety.services.inside import ask_inside
from apps.safety.services.policies import policy_from, roll_back, take_back, try_policy, write_policy
from apps.safety.services.pressing import begin_press, needs_passkey, press
from apps.safety.services.steps import record_step
from apps.safety.services.upkeep import end_late

__all__ = [
    "abort_execution",
    "ask_inside",
    "begin_press",
    "claim_letter",
    "complete_execution",
    "confirm_operation",
    "end_late",
    "execute_agent",
    "needs_passkey",
    "policy_from",
    "press",
    "record_step",
    "roll_back",
    "take_back",
    "try_policy",
    "verify_challenge",
    "write_policy",
]
