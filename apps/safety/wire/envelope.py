"""Handle requests: validate, route, run in one transaction, and wrap the reply in the envelope.

A domain failure is an answer. An unexpected error becomes INTERNAL_ERROR and discloses nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from apps.safety.enums import Endpoint
from apps.safety.queries import policy_of
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.wire.declarations import OPERATIONS, Operation, Param
from apps.safety.wire.introspection import LIMITS, introspect, tool_name, unknown_operation
from kernel.tenancy import tenant_scope

MAX_BATCH = 50
MAX_REQUEST_ID_LENGTH = 120
MAX_PARAM_SHOWN = 80
_log = logging.getLogger(__name__)
_TYPES: dict[str, Any] = {"string": str, "object": dict, "array": list, "boolean": bool}
_WORDS = {str: "string", dict: "object", list: "array", bool: "boolean", int: "number", float: "number"}


def handle_request(
    tenant_id: UUID,
    principal: Principal,
    request: Any,
    *,
    endpoint: Endpoint | None = None,
    surface: str = "semantic",
    prefix: str = "",
) -> dict[str, Any]:
    """Return the envelope for one request or a batch. `endpoint`: the one it came through; None accepts all."""
    begun = time.perf_counter()
    if not isinstance(request, Mapping):
        return envelope(_wrong_type("request", "object", request))
    if (problem := _limits(request)) is not None:
        return envelope(problem)
    connection = _Connection(tenant_id, principal, endpoint, surface, prefix)
    is_batch = "operations" in request and "operation" not in request
    answer = _batch(connection, request["operations"]) if is_batch else envelope(connection.reply(request))
    return answer | {"_meta": _meta(request, begun)} if answer["success"] else answer


def _meta(request: Mapping[str, Any], begun: float) -> dict[str, Any]:
    """Metadata for logs, with the request's own id if it has one. A refusal has none (contract safety-loop 2)."""
    given = request.get("_request_id")
    request_id = given if isinstance(given, str) and 0 < len(given) <= MAX_REQUEST_ID_LENGTH else str(uuid4())
    return {"request_id": request_id, "duration_ms": round((time.perf_counter() - begun) * 1000, 2)}


def envelope(reply: Reply) -> dict[str, Any]:
    """Serialise a reply for the wire (contract safety-loop 2)."""
    if isinstance(reply, Success):
        return {"success": True, "data": reply.data}
    error: dict[str, Any] = {"code": reply.code, "message": reply.message}
    if reply.details:
        error["details"] = reply.details
    return {"success": False, "error": error}


def _batch(connection: _Connection, operations: Any) -> dict[str, Any]:
    """Run operations in order; one that must not continue stops the rest."""
    if not isinstance(operations, list):
        return envelope(_wrong_type("operations", "array", operations))
    if len(operations) > MAX_BATCH:
        return envelope(_too_large("array_items", MAX_BATCH, len(operations), "items"))
    results: list[dict[str, Any]] = []
    for item in operations:
        reply = connection.reply(item) if isinstance(item, Mapping) else _wrong_type("operations", "object", item)
        results.append(envelope(reply))
        data = results[-1].get("data")
        if isinstance(data, dict) and not data.get("autonomy", {}).get("continue", True):
            break
    done = sum(result["success"] for result in results)
    summary = {"total": len(operations), "succeeded": done, "failed": len(results) - done}
    return {"success": True, "data": None, "results": results, "summary": summary}


@dataclass(frozen=True)
class _Connection:
    """Who sends requests, and through which endpoint, surface and prefix of tool names."""

    tenant_id: UUID
    principal: Principal
    endpoint: Endpoint | None
    surface: str
    prefix: str

    def reply(self, request: Mapping[str, Any]) -> Reply:
        """Find the operation, validate its parameters and run it in one transaction."""
        name = request.get("operation")
        if name is None:
            return Failure("VALIDATION_MISSING_PARAM", "'operation' is missing.", {"param_name": "operation"})
        if not isinstance(name, str):
            return _wrong_type("operation", "string", name)
        operation = OPERATIONS.get(name)
        if operation is None:
            return unknown_operation(name)
        if self.endpoint is not None and operation.endpoint is not self.endpoint:
            right = tool_name(operation.endpoint, self.prefix)
            details = {"operation": name, "endpoint": operation.endpoint.value}
            return Failure("VALIDATION_WRONG_ENDPOINT", f"'{name}' is called through '{right}'.", details)
        given = given_params(operation, request)
        if isinstance(given, Failure):
            return given
        try:
            with tenant_scope(self.tenant_id):
                if operation.service is None:
                    policy = policy_of(self.principal.ref)
                    return introspect(given, policy, surface=self.surface, prefix=self.prefix)
                return operation.run(self.principal, given)
        except Exception as error:  # noqa: BLE001 (an error must disclose nothing)
            _log.error("safety_operation_failed operation=%s error=%s", operation.name, type(error).__name__)
            return Failure("INTERNAL_ERROR", "Something went wrong here. Do not act; try again in a moment.")


def given_params(operation: Operation, request: Mapping[str, Any]) -> dict[str, Any] | Failure:
    """Return the parameters by their published names.

    `params` wins over the same name beside it; names with a leading underscore are metadata, not parameters.
    """
    inner = request.get("params", {})
    if not isinstance(inner, Mapping):
        return _wrong_type("params", "object", inner)
    outer = {key: value for key, value in request.items() if key not in ("operation", "params")}
    sent = {key: value for key, value in {**outer, **inner}.items() if not key.startswith("_")}
    known = {param.name: param for param in operation.params}
    aliases = {param.alias: param.name for param in operation.params if param.alias}
    named = {aliases[key]: value for key, value in sent.items() if key in aliases}
    named |= {key: value for key, value in sent.items() if key not in aliases}
    if strange := sorted(set(named) - set(known)):
        details = {"operation": operation.name, "unknown_params": strange[:20], "valid_params": list(known)}
        listed = ", ".join(repr(name[:MAX_PARAM_SHOWN]) for name in strange[:20])
        valid = ", ".join(known) or "none"
        message = f"'{operation.name}' has no parameter {listed}. Its parameters: {valid}."
        return Failure("VALIDATION_UNKNOWN_PARAM", message, details)
    for param in operation.params:
        if (problem := _problem(operation, param, named.get(param.name))) is not None:
            return problem
    return {key: value for key, value in named.items() if value is not None}


def _problem(operation: Operation, param: Param, value: Any) -> Failure | None:
    if value is None or (param.required and isinstance(value, str) and not value.strip()):
        if not param.required:
            return None
        details = {"param_name": param.name, "operation": operation.name}
        return Failure("VALIDATION_MISSING_PARAM", f"'{param.name}' is missing.", details)
    if not isinstance(value, _TYPES[param.type]):
        return _wrong_type(param.name, param.type, value)
    if param.max_length and len(value) > param.max_length:
        return _too_large("string_length", param.max_length, len(value), "characters")
    if param.enum and value not in param.enum:
        allowed = {"param_name": param.name, "allowed": list(param.enum)}
        return Failure("VALIDATION_INVALID_VALUE", f"'{param.name}' is not one of its values.", allowed)
    return None


def _wrong_type(name: str, expected: str, value: Any) -> Failure:
    actual = _WORDS.get(type(value), "null" if value is None else "other")
    details = {"param_name": name, "expected_type": expected, "actual_type": actual}
    return Failure("VALIDATION_INVALID_TYPE", f"'{name}' has to be of type '{expected}'.", details)


def _too_large(kind: str, limit: int, actual: int, unit: str) -> Failure:
    details = {"limit_type": kind, "limit_value": limit, "actual_value": actual, "unit": unit}
    return Failure("VALIDATION_PAYLOAD_TOO_LARGE", "The request is larger than is taken here.", details)


def _limits(value: Any, depth: int = 1) -> Failure | None:
    """Check depth, lengths and encoding of the whole request before anything else."""
    if isinstance(value, str):
        if len(value) > LIMITS["max_string_length"]:
            return _too_large("string_length", LIMITS["max_string_length"], len(value), "characters")
        return _bad_text(value)
    if not isinstance(value, Mapping | list):
        return None
    if depth > LIMITS["max_depth"]:
        return _too_large("depth", LIMITS["max_depth"], depth, "levels")
    if len(value) > LIMITS["max_array_items"]:
        return _too_large("array_items", LIMITS["max_array_items"], len(value), "items")
    inside = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
    return next((problem for item in inside if (problem := _limits(item, depth + 1)) is not None), None)


def _bad_text(value: str) -> Failure | None:
    offset = value.find("\x00")
    if offset < 0:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            offset = error.start
    return None if offset < 0 else invalid_encoding(offset)


def invalid_encoding(offset: int) -> Failure:
    """Refusal for text that is not UTF-8. `offset`: the first wrong byte."""
    details = {"location": "request", "byte_offset": offset}
    return Failure("VALIDATION_INVALID_ENCODING", "The request holds text that is not UTF-8, or a NUL.", details)
