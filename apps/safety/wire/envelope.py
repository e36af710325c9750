"""From a request to its answer: validated, routed, carried out in one transaction, put into the envelope.

A domain failure is an answer. Whatever goes wrong unforeseen is INTERNAL_ERROR, with nothing of it told outside.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID, uuid4

from apps.safety.enums import Endpoint
from apps.safety.queries import policy_of
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.wire.declarations import OPERATIONS, Operation, Param
from apps.safety.wire.introspection import LIMITS, introspect, tool_name, unknown
from kernel.tenancy import tenant_scope

MOST_IN_BATCH = 50
LONGEST_REQUEST_ID = 120
LONGEST_PARAM_TOLD = 80
R = TypeVar("R")
_log = logging.getLogger(__name__)
_TYPES: dict[str, Any] = {"string": str, "object": dict, "array": list, "boolean": bool}
_WORDS = {str: "string", dict: "object", list: "array", bool: "boolean", int: "number", float: "number"}


def answer(
    tenant_id: UUID,
    principal: Principal,
    request: Any,
    *,
    endpoint: Endpoint | None = None,
    surface: str = "semantic",
    prefix: str = "",
) -> dict[str, Any]:
    """The envelope for one request or a batch. `endpoint`: through which one it came; None takes them all."""
    begun = time.perf_counter()
    if not isinstance(request, Mapping):
        return enveloped(_wrong_type("request", "object", request))
    if (problem := _limits(request)) is not None:
        return enveloped(problem)
    one = _One(tenant_id, principal, endpoint, surface, prefix)
    whole = "operations" in request and "operation" not in request
    said = _batch(one, request["operations"]) if whole else enveloped(one.reply(request))
    return said | {"_meta": _meta(request, begun)} if said["success"] else said


def _meta(request: Mapping[str, Any], begun: float) -> dict[str, Any]:
    """About the request, for logs: its own id where it came with one. A refusal has none of it (contract 2)."""
    named = request.get("_request_id")
    request_id = named if isinstance(named, str) and 0 < len(named) <= LONGEST_REQUEST_ID else str(uuid4())
    return {"request_id": request_id, "duration_ms": round((time.perf_counter() - begun) * 1000, 2)}


def enveloped(reply: Reply) -> dict[str, Any]:
    """As it goes over the wire (contract 2)."""
    if isinstance(reply, Success):
        return {"success": True, "data": reply.data}
    error: dict[str, Any] = {"code": reply.code, "message": reply.message}
    if reply.details:
        error["details"] = reply.details
    return {"success": False, "error": error}


def _batch(one: _One, operations: Any) -> dict[str, Any]:
    """In order; what needs a person's confirmation halts the rest."""
    if not isinstance(operations, list):
        return enveloped(_wrong_type("operations", "array", operations))
    if len(operations) > MOST_IN_BATCH:
        return enveloped(_too_large("array_items", MOST_IN_BATCH, len(operations), "items"))
    results: list[dict[str, Any]] = []
    for item in operations:
        reply = one.reply(item) if isinstance(item, Mapping) else _wrong_type("operations", "object", item)
        results.append(enveloped(reply))
        if _halts(results[-1]):
            break
    done = sum(each["success"] for each in results)
    summary = {"total": len(operations), "succeeded": done, "failed": len(results) - done}
    return {"success": True, "data": None, "results": results, "summary": summary}


def _halts(result: dict[str, Any]) -> bool:
    """A directive that says no is for the steps after it too."""
    data = result.get("data")
    autonomy = data.get("autonomy") if isinstance(data, dict) else None
    return isinstance(autonomy, dict) and not autonomy["continue"]


class _One:
    """Answers one operation of one caller."""

    def __init__(
        self, tenant_id: UUID, principal: Principal, endpoint: Endpoint | None, surface: str, prefix: str
    ) -> None:
        self.tenant_id, self.principal, self.endpoint = tenant_id, principal, endpoint
        self.surface, self.prefix = surface, prefix

    def reply(self, request: Mapping[str, Any]) -> Reply:
        asked = self._asked(request)
        return asked if isinstance(asked, Failure) else self._carried_out(*asked)

    def _asked(self, request: Mapping[str, Any]) -> tuple[Operation, Mapping[str, Any]] | Failure:
        """The operation and its parameters."""
        name = request.get("operation")
        if name is None:
            return Failure("VALIDATION_MISSING_PARAM", "'operation' is missing.", {"param_name": "operation"})
        if not isinstance(name, str):
            return _wrong_type("operation", "string", name)
        operation = OPERATIONS.get(name)
        if operation is None:
            return unknown(name)
        if self.endpoint is not None and operation.endpoint is not self.endpoint:
            right = tool_name(operation.endpoint, self.prefix)
            details = {"operation": name, "endpoint": operation.endpoint.value}
            return Failure("VALIDATION_WRONG_ENDPOINT", f"'{name}' is called through '{right}'.", details)
        given = given_params(operation, request)
        return given if isinstance(given, Failure) else (operation, given)

    def _carried_out(self, operation: Operation, given: Mapping[str, Any]) -> Reply:
        def carry_out() -> Reply:
            with tenant_scope(self.tenant_id):
                if operation.handler is None:
                    policy = policy_of(self.principal.ref)
                    return introspect(given, policy, surface=self.surface, prefix=self.prefix)
                return operation.handler(self.principal, given)

        return _safely(operation, carry_out)


def _safely(operation: Operation, step: Callable[[], R]) -> R | Failure:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 (nothing of a fault is told outside)
        _log.error("safety_operation_failed operation=%s error=%s", operation.name, type(error).__name__)
        return Failure("INTERNAL_ERROR", "Something went wrong here. Do not act; try again in a moment.")


def given_params(operation: Operation, request: Mapping[str, Any]) -> dict[str, Any] | Failure:
    """The parameters by their published names. What stands in `params` wins over what stands beside it; what begins
    with an underscore is about the request and no parameter."""
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
        named_there = ", ".join(repr(each[:LONGEST_PARAM_TOLD]) for each in strange[:20])
        valid = ", ".join(known) or "none"
        message = f"'{operation.name}' has no parameter {named_there}. Its parameters: {valid}."
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
    wanted = _TYPES[param.type]
    if not isinstance(value, wanted):
        return _wrong_type(param.name, param.type, value)
    if param.longest and len(value) > param.longest:
        return _too_large("string_length", param.longest, len(value), "characters")
    if param.enum and value not in param.enum:
        told = {"param_name": param.name, "allowed": list(param.enum)}
        return Failure("VALIDATION_INVALID_VALUE", f"'{param.name}' is not one of its values.", told)
    return None


def _wrong_type(name: str, expected: str, value: Any) -> Failure:
    actual = _WORDS.get(type(value), "null" if value is None else "other")
    details = {"param_name": name, "expected_type": expected, "actual_type": actual}
    return Failure("VALIDATION_INVALID_TYPE", f"'{name}' has to be of type '{expected}'.", details)


def _too_large(kind: str, limit: int, actual: int, unit: str) -> Failure:
    details = {"limit_type": kind, "limit_value": limit, "actual_value": actual, "unit": unit}
    return Failure("VALIDATION_PAYLOAD_TOO_LARGE", "The request is larger than is taken here.", details)


def _limits(value: Any, depth: int = 1) -> Failure | None:
    """Depth, lengths, and text that no database keeps; everything that came, before anything is looked at."""
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
    return next((problem for each in inside if (problem := _limits(each, depth + 1)) is not None), None)


def _bad_text(value: str) -> Failure | None:
    at = value.find("\x00")
    if at < 0:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            at = error.start
    if at < 0:
        return None
    return not_text(at)


def not_text(at: int) -> Failure:
    """`at`: where the first byte stands that is none of a text."""
    details = {"location": "request", "byte_offset": at}
    return Failure("VALIDATION_INVALID_ENCODING", "The request holds text that is not UTF-8, or a NUL.", details)
