"""Trust levels of texts. Joining texts never lowers the taint (contract silas 2, spec 5.12)."""

from __future__ import annotations

from enum import StrEnum


class Taint(StrEnum):
    OWNER = "owner"
    AUTH = "auth"
    EXTERNAL = "external"


_ORDER = {Taint.OWNER: 0, Taint.AUTH: 1, Taint.EXTERNAL: 2}


def join(*taints: Taint) -> Taint:
    """The least trusted of the given; with none given, `external`."""
    return max(taints, key=_ORDER.__getitem__, default=Taint.EXTERNAL)
