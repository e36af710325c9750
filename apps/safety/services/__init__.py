"""All writes of the safety loop: reports of agents, and decisions of operators. One transaction each.

An expected refusal is a value (`Failure`), so that the audit entry it wrote is committed with it. `principal` is the
authenticated caller; `actor` is a person at the console.
"""

from apps.safety.services.challenges import claim_code_email, verify_challenge
from apps.safety.services.confirmations import confirm_operation
from apps.safety.services.executions import abort_execution, complete_execution, end_overdue, execute_agent
from apps.safety.services.internal_agents import judge_internal_call
from apps.safety.services.operator_actions import begin_operator_action, needs_passkey, perform_operator_action
from apps.safety.services.policies import (
    backtest_policy,
    restore_policy_version,
    validate_policy,
    withdraw_policy,
    write_policy,
)
from apps.safety.services.steps import record_step

__all__ = [
    "abort_execution",
    "backtest_policy",
    "begin_operator_action",
    "claim_code_email",
    "complete_execution",
    "confirm_operation",
    "end_overdue",
    "execute_agent",
    "judge_internal_call",
    "needs_passkey",
    "perform_operator_action",
    "record_step",
    "restore_policy_version",
    "validate_policy",
    "verify_challenge",
    "withdraw_policy",
    "write_policy",
]
