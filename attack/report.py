"""The result of one attack: what was tried, what came of it, and the bound that was promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = ("figure", "tried", "result", "bound", "")


@dataclass(frozen=True)
class Figure:
    """One line of the report. `tried` is how many attempts it rests on; `holds` is whether `result` keeps `bound`.
    `timed`: the result depends on how busy the machine is, so that no test is decided by it."""

    name: str
    tried: int
    result: str
    bound: str
    holds: bool
    timed: bool = False


def table(figures: Sequence[Figure]) -> str:
    """Aligned columns for the screen."""
    lines = [HEAD, *((f.name, str(f.tried), f.result, f.bound, "ok" if f.holds else "MISSED") for f in figures)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
