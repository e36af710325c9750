"""The contract's example values (contract silas 5.7 and 8), spelled out once for the tests of this room."""

from __future__ import annotations

from typing import Any

BASE: dict[str, Any] = {
    "id": "task-1",
    "type": "task",
    "title": "T",
    "parent": None,
    "spawned_by": None,
    "follow_up_of": None,
    "domain": None,
    "agent": "ephemeral",
    "budget": {
        "max_tokens": 200000,
        "max_cost_usd": 2.0,
        "max_wall_time_seconds": 1800,
        "max_attempts": 5,
        "max_planner_calls": 3,
    },
    "body": "B",
    "interaction_mode": "confirm_only_when_required",
    "input_artifacts_from": [],
    "verify": [],
    "gates": [],
    "skills": [],
    "access_levels": {},
    "escalation": {},
    "schedule": None,
    "on_failure": "report",
    "on_stuck": "consult_planner",
    "failure_context": None,
    "tasks": [],
    "depends_on": [],
}

CHECK: dict[str, Any] = {
    "name": "tests_pass",
    "run": "pytest -q",
    "expect": {
        "exit_code": 0,
        "equals": None,
        "contains": None,
        "regex": None,
        "output_lt": None,
        "output_gt": None,
        "file_exists": None,
        "not_empty": None,
    },
    "timeout": 60,
    "network": False,
}

GATE: dict[str, Any] = {
    "name": "cap",
    "on": "on_tool_call",
    "after_step": None,
    "provider": "predicate",
    "type": "numeric_range",
    "check": None,
    "config": {},
    "extract": "usd",
    "auto_approve": {"min": 0.0, "max": 25.0},
    "require_approval": None,
    "block": {"outside": [0.0, 100.0]},
    "allowed_values": None,
    "approval_values": None,
    "on_block": "abort",
    "check_command": None,
    "check_expect": None,
    "promote_to_policy": False,
}


def escalation(action: str, message: str | None = None) -> dict[str, Any]:
    return {
        "action": action,
        "queue": None,
        "message": message,
        "instruction": None,
        "max_retries": 2,
        "fallback": None,
    }


V1 = "0b993edac0c182dd39b1a57607caccc91a6ce9bdafa71d2f23995ccf1512fa0a"
V2 = "2266a48c6ada220307a0575e8d14cfe0e8d0693dca65f386487ea150930f1bb2"
V2_REVERSED = "8e5622b013bc98b820584363065cd2a945d737e53de5d1d210194c3b10a04e95"
V2B = "30c5f8532132132c20b2f6c6990f3d3cd295919ba4fae4730a091d0a69222961"
V3 = "6abecf496ebb3f2a49ec58c4a044daa41b797e8ecfa1a23d0f394c10d945f3f1"
S0 = "fce104ef0797aa05dce045e8ad15da5f32ea4bc9e8f04b6092f36ea6af343ffe"
S1 = "bc070f0e17bc87e7e9389389579b60c418bd8f0ad99155428333339611c3aded"
BATCH = "fe7739de5c47a0ea8d7a1727dab06c3a9551fc685170c799d481d6ac6ca089bf"
BATCH_SUBSET = "0685fe9d44300c4bcef69132e915e5b6733234627f56b8bb3a5da280ed7fbabf"
SEED = bytes(range(32))
PUBLIC_KEY = bytes.fromhex("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8")
T1 = "4AxmNbPFRlFPjvP2ut2UpUn83eSh/uJ56wMjpbn6mpy9PV8sHtzCu/yScku7atG7soNj4vsvgNBybJszPi5qDw=="
M1 = "jBAW0BppxtadPVLpflSyXb55nO92sM/l2AKMefrO/i37+RN+ErnrmWCIRqjkjhTbde1NTZwOZOd4cuCTrnXeBA=="
