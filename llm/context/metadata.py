"""Choose how many tools are listed for a model that has not asked for them: as many as their budget allows.

Spec 5.1 step 6.5 and 5.7: the cap keeps a large catalogue of skills from crowding out the conversation. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def select_within_budget(
    entries: Sequence[T], *, tokens: int, weight_of: Callable[[T], int]
) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Select entries within the budget: `(kept, dropped)`, both in the order given, most important first.

    An entry that is too large for what is left is dropped, and a smaller one after it may still fit.
    """
    kept, dropped = [], []
    for entry in entries:
        weight = weight_of(entry)
        if weight <= tokens:
            tokens -= weight
            kept.append(entry)
        else:
            dropped.append(entry)
    return tuple(kept), tuple(dropped)
