"""What introspection claims about conformance is what a run of the public MCP-AQL runner shows.

The runner (`run-conformance-tests.mjs` of the specification's repository) reads a bundle of captured answers. It is
captured here from the real server; the bundle and the runner's reports are kept in docs/. After a change of the wire
format: SILAS_CAPTURE=1 pytest tests/safety/test_conformance.py, then run the runner (docs/safety-conformance.md).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from apps.safety.wire import OPERATIONS
from tests.factories.safety import HARMLESS, Api

DOCS = Path(__file__).parents[2] / "docs"
BUNDLE = DOCS / "safety-conformance-bundle.json"
REPORTS = {level: DOCS / f"safety-conformance-level{level}.json" for level in (1, 2)}
_VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z")
_VALID: dict[str, dict[str, Any]] = {
    "introspect": {"query": "operations"},
    "execute_agent": {"element_name": "clerk"},
    "record_execution_step": {"element_name": "clerk", "next_action_hint": HARMLESS},
    "complete_execution": {"element_name": "clerk"},
    "abort_execution": {"element_name": "clerk"},
    "confirm_operation": {"operation": "update the address of order 4711"},
    "verify_challenge": {"challenge_id": "x", "code": "y"},
}


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def ask(api: Api, name: str, /, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = api.post({"operation": name, "params": params}).json()
    answer.pop("_meta", None)
    steady: dict[str, Any] = json.loads(_VOLATILE.sub("…", json.dumps(answer, ensure_ascii=False)))
    return steady


def accepted(api: Api, operation: str) -> list[str]:
    """The parameters that the server takes, as its own refusal of an unknown one names them, and tried one by one."""
    refusal = ask(api, operation, **_VALID[operation], no_such_parameter=1)
    names = refusal["error"]["details"]["valid_params"]
    for name in names:
        tried = ask(api, operation, **{**_VALID[operation], name: 1.5})
        assert tried.get("error", {}).get("code") != "VALIDATION_UNKNOWN_PARAM", name
    return list(names)


def captured(api: Api) -> dict[str, Any]:
    details = [ask(api, "introspect", query="operations", name=name)["data"]["operation"] for name in OPERATIONS]
    missing = [
        {"operation": each["name"], "parameter": param["name"], "response": refused}
        for each in details
        for param in each["parameters"]
        if param["required"]
        for rest in [{key: value for key, value in _VALID[each["name"]].items() if key != param["name"]}]
        for refused in [ask(api, each["name"], **rest)]
    ]
    unknown = [
        {
            "operation": name,
            "parameter": "no_such_parameter",
            "response": ask(api, name, **_VALID[name], no_such_parameter=1),
        }
        for name in OPERATIONS
    ]
    wrong_type = [
        {"name": f"{name}-wrong-type", "must_mention": [first], "response": ask(api, name, **{**valid, first: 1.5})}
        for name, valid in _VALID.items()
        for first in [next(iter(valid))]
    ]
    errors = [
        *wrong_type,
        {"name": "no-such-operation", "must_mention": ["no_such"], "response": ask(api, "no_such")},
        {
            "name": "nothing-runs",
            "must_mention": ["execute_agent"],
            "response": ask(api, "abort_execution", element_name="x"),
        },
        {
            "name": "wrong-code",
            "must_mention": ["code"],
            "response": ask(api, "verify_challenge", **_VALID["verify_challenge"]),
        },
    ]
    ask(api, "execute_agent", **_VALID["execute_agent"])
    step = ask(api, "record_execution_step", **_VALID["record_execution_step"])
    return {
        "implementation": "silas_platform safety loop",
        "version": "1",
        "spec_version": "1.0.0-draft",
        "endpoint_modes": ["semantic", "single"],
        "capabilities": {"field_selection": False, "batch_operations": True},
        "introspection": {
            "operations_list": ask(api, "introspect", query="operations"),
            "types_list": ask(api, "introspect", query="types"),
            "operation_details": details,
        },
        "accepted_parameters": {name: accepted(api, name) for name in OPERATIONS},
        "parameter_tests": {"missing_required": missing, "unknown_parameter": unknown, "optional_defaults": []},
        "error_tests": errors,
        "round_trip_tests": [
            {"name": "step-is-counted", "expected_fields": {"data.progress.current": 1}, "read_response": step}
        ],
        "update_preservation_tests": [],
        "constraint_tests": [],
        "semantic_tests": [],
    }


def test_bundle_in_the_documents_is_what_the_server_answers(api: Api) -> None:
    now = captured(api)
    if os.environ.get("SILAS_CAPTURE"):
        BUNDLE.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(BUNDLE.read_text(encoding="utf-8")) == now


def test_claimed_level_is_the_one_that_the_runner_reached(api: Api) -> None:
    reports = {level: json.loads(path.read_text(encoding="utf-8")) for level, path in REPORTS.items()}
    # The runner names the level that was asked for even where its SHOULD categories failed; only a clean run counts.
    reached = max(level for level, report in reports.items() if report["exitCode"] == 0)
    claimed = ask(api, "introspect", query="operations")["data"]["_protocol"]["conformance"]
    assert claimed == f"level-{reached}"
