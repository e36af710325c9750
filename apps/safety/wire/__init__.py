"""What is the loop from outside? Declarations, envelope and introspection; REST and MCP speak through here."""

from apps.safety.wire.declarations import OPERATIONS, Operation, Param
from apps.safety.wire.envelope import answer, enveloped, not_text

__all__ = ["OPERATIONS", "Operation", "Param", "answer", "enveloped", "not_text"]
