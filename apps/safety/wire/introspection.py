"""Introspection of operations and types, generated from the declarations that route, so that it cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.safety.enums import Endpoint, ExecutionStatus, Mode, StepOutcome, Tier, Tolerance
from apps.safety.schemas import Failure, Policy, Reply, Success
from apps.safety.wire.declarations import OPERATIONS, Operation

LIMITS = {"max_request_bytes": 1_048_576, "max_string_length": 1_048_576, "max_array_items": 10_000, "max_depth": 32}


def _field(name: str, kind: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "type": kind, "required": required}


_STATE = [
    _field("execution_id", "string", required=True),
    _field("status", "ExecutionStatus", required=True),
    _field("started_at", "string"),
    _field("finished_at", "string"),
    _field("progress", "object"),
]
_OBJECTS: dict[str, list[dict[str, Any]]] = {
    "AutonomyDirective": [
        _field("continue", "boolean", required=True),
        _field("factors", "array", required=True),
        _field("stopped", "boolean"),
        _field("reason", "string"),
        _field("stepsRemaining", "number"),
        _field("nextStepRisk", "SafetyTier"),
        _field("notifications", "array"),
    ],
    "AgentNotification": [
        _field("type", "string", required=True),
        _field("message", "string", required=True),
        _field("timestamp", "string", required=True),
        _field("metadata", "object"),
    ],
    "ExecutionState": _STATE,
    "StepResult": [*_STATE, _field("autonomy", "AutonomyDirective", required=True)],
    "Confirmation": [_field("confirmed", "boolean", required=True), _field("operation", "string")],
    "Verification": [_field("verified", "boolean", required=True), _field("unblocked_agent", "string")],
    "Introspection": [_field("operations", "array"), _field("operation", "object"), _field("types", "array")],
}
# Names of policy fields in the contract (safety-loop 9).
_POLICY_NAMES = {
    "max_steps": "maxAutonomousSteps",
    "tolerance": "riskTolerance",
    "requires_approval": "requiresApproval",
    "auto_approve": "autoApprove",
    "challenge_seconds": "challengeTimeoutSeconds",
}
_POLICY_TYPES = {"mode": "SafetyMode", "tolerance": "RiskTolerance"}


def _policy_fields() -> list[dict[str, Any]]:
    """Fields of a policy with their defaults, read from the model."""
    defaults, fields = Policy().stored(), []
    for name, schema in Policy.model_json_schema()["properties"].items():
        kind = {"integer": "number"}.get(schema.get("type", ""), schema.get("type", "object"))
        field = _field(_POLICY_NAMES.get(name, name), _POLICY_TYPES.get(name, kind)) | {"default": defaults[name]}
        fields.append(field | {key: schema[key] for key in ("minimum", "maximum") if key in schema})
    return fields


_OBJECTS["SafetyPolicy"] = _policy_fields()
_ENUMS: dict[str, list[str]] = {
    "RiskTolerance": list(Tolerance.values),
    "SafetyTier": list(Tier.values),
    "StepOutcome": list(StepOutcome.values),
    "SafetyMode": list(Mode.values),
    "ExecutionStatus": list(ExecutionStatus.values),
}


def introspect(given: Mapping[str, Any], policy: Policy, *, surface: str, prefix: str) -> Reply:
    """Answer `introspect`. `policy`: the caller's active one, whose mode and step limit are part of the answer."""
    name = given.get("name")
    if given["query"] == "types":
        types = {"types": [{"name": one, "kind": "object"} for one in _OBJECTS]}
        types["types"] += [{"name": one, "kind": "enum"} for one in _ENUMS]
        return Success({"type": _type(name)} if name else types)
    if name:
        operation = OPERATIONS.get(name)
        return Success({"operation": _details(operation, surface, prefix) if operation else None})
    listed = [
        {
            "name": operation.name,
            "semantic_category": operation.endpoint.name,
            "endpoint": operation.endpoint.value,
            "description": operation.description,
        }
        for operation in OPERATIONS.values()
    ]
    return Success({"_protocol": _protocol(surface, policy), "operations": listed})


def _protocol(surface: str, policy: Policy) -> dict[str, Any]:
    return {
        "version": "1.0.0-draft",
        "conformance": "level-1",
        "mode": surface,
        "capabilities": {
            "execution_safety_loop": policy.mode.value,
            "max_autonomous_steps": policy.max_steps,
            "configuration": "SafetyPolicy",
        },
        "concurrency": "resource-locked",
        "limits": LIMITS,
    }


def tool_name(endpoint: Endpoint | None, prefix: str = "") -> str:
    return f"{prefix}mcp_aql" if endpoint is None else f"{prefix}mcp_aql_{endpoint.value}"


def _details(operation: Operation, surface: str, prefix: str) -> dict[str, Any]:
    name, kind = operation.returns
    reads = operation.endpoint is Endpoint.READ
    return {
        "name": operation.name,
        "semantic_category": operation.endpoint.name,
        "endpoint": operation.endpoint.value,
        "mcpTool": tool_name(None if surface == "single" else operation.endpoint, prefix),
        "description": operation.description,
        "permissions": {"readOnly": reads, "destructive": operation.endpoint is Endpoint.EXECUTE},
        "parameters": [param.describe() for param in operation.params],
        "returns": {"name": name, "kind": kind},
    }


def _type(name: str) -> dict[str, Any] | None:
    if name in _OBJECTS:
        return {"name": name, "kind": "object", "fields": _OBJECTS[name]}
    return {"name": name, "kind": "enum", "values": _ENUMS[name]} if name in _ENUMS else None


def unknown_operation(name: str) -> Failure:
    details = {"operation": name[:120], "available": list(OPERATIONS)}
    return Failure("NOT_FOUND_OPERATION", f"There is no operation '{name[:120]}'. Call 'introspect'.", details)
