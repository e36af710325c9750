"""May I do this? The execution safety loop for any Python agent: `Loop` asks before its functions act."""

from silas_safety.loop import Held, Loop, Refused, Stopped, Unreachable

__all__ = ["Held", "Loop", "Refused", "Stopped", "Unreachable"]
