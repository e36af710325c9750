"""The wire protocol of the safety loop: declarations, envelope and introspection, shared by REST and MCP."""

from apps.safety.wire.declarations import OPERATIONS, Operation, Param
from apps.safety.wire.envelope import envelope, handle_request, invalid_encoding

__all__ = ["OPERATIONS", "Operation", "Param", "envelope", "handle_request", "invalid_encoding"]
