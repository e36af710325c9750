"""In which words does a pattern become something that a bot is told? Decided from values; no session words it."""

from __future__ import annotations

_LONGEST = 500


def context_text(pattern_kind: str, summary: str) -> str:
    """The sentence for a pattern, on one line (contract autonomy A8: derived on the server from kind and wording)."""
    return f"Seen before ({pattern_kind.replace('_', ' ')}): {' '.join(summary.split())}"[:_LONGEST]


def appended(old: str, new: str) -> str:
    """The new line below what stands there; no blank line before the first."""
    return f"{old}\n{new}" if old else new
