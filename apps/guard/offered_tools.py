"""A tool as a model sees it, and the result of its call as a source of later values. `toolset` makes the calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from apps.guard.enums import Intent
from apps.guard.rules import OUTSIDE_INTENTS
from kernel.provenance import Origin, Source, Traced, as_text


@dataclass(frozen=True)
class OfferedTool:
    """A tool as a model sees it, and the intent of its calls.

    `parameters` is a JSON schema, `estimate` the price of one call in US dollars, None if it is free. `leaves`: it
    sends to an outside host. `is_outside`: its results were not written in the company's own records."""

    name: str
    description: str
    parameters: dict[str, Any]
    intent: Intent = Intent.RUN_SKILL
    acting: bool = False
    estimate: Decimal | None = None
    leaves: bool = False
    is_outside: bool = False


def source_of_result(
    intent: Intent, value: object, *, leaves: bool, outside: bool, args: Mapping[str, object]
) -> Source:
    """Return the result of a call as a source of later values. The content of one of the company's outside accounts,
    such as a mailbox, is private like its records, but may have been written by anyone."""
    origin = Origin.TOOL if leaves or outside or intent in OUTSIDE_INTENTS else Origin.RECORDS
    origin = Origin.DOCUMENT if intent is Intent.RETRIEVE_CHUNKS else origin
    return Source(Traced(origin), as_text(value), as_text(args), is_private=outside and not leaves)
