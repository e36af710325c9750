"""What can this visitor reach? Levels move by passed gates and by time, never by what anybody says (spec 5.6). Pure.

One controller per turn and per presence, hydrated from the scope's grant: nothing is remembered between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

PUBLIC = "public"


class Level(Protocol):
    """An access level of the active goal (contract silas 6)."""

    @property
    def tools(self) -> list[str]: ...
    @property
    def requires(self) -> list[str]: ...
    @property
    def expires_after(self) -> int | None: ...


@dataclass(frozen=True)
class Grant:
    """What the rows say: the level, until when, by which gates, and which of the tenant's customers it hangs on."""

    level: str = PUBLIC
    expires_at: datetime | None = None
    verified: frozenset[str] = frozenset()
    customer: str = ""
    customer_name: str = ""


@dataclass(frozen=True)
class AccessController:
    """A grant among the levels of a goal, whose order is from lowest to highest."""

    levels: Mapping[str, Level]
    grant: Grant

    def at(self, moment: datetime) -> AccessController:
        """The controller at `moment`: an expired grant, or one of a level that is gone, is back at public."""
        known = self.grant.level == PUBLIC or self.grant.level in self.levels
        expired = self.grant.expires_at is not None and self.grant.expires_at <= moment
        return self if known and not expired else replace(self, grant=Grant())

    def gate_passed(self, gate: str, *, customer: str, customer_name: str, moment: datetime) -> AccessController:
        """The controller after `gate` passed for `customer`; passing for another customer starts from nothing."""
        same = self.grant.customer in ("", customer)
        verified = (self.grant.verified if same else frozenset()) | {gate}
        level = highest_level(self.levels, verified)
        if level == PUBLIC:
            return replace(self, grant=Grant(verified=verified, customer=customer, customer_name=customer_name))
        seconds = self.levels[level].expires_after
        until = None if seconds is None else moment + timedelta(seconds=seconds)
        return replace(self, grant=Grant(level, until, frozenset(verified), customer, customer_name))

    @property
    def subject(self) -> str:
        """The customer for whom anything may be read or done: nobody below the level that proves who it is, so that one
        of two required checks opens nothing yet."""
        return "" if self.grant.level == PUBLIC else self.grant.customer

    def allowed_tools(self) -> frozenset[str]:
        level = self.levels.get(self.grant.level)
        return frozenset(level.tools) if level else frozenset()

    def reached_levels(self) -> tuple[str, ...]:
        """The level and all below it, lowest first: what a collection's minimum level is held against."""
        names = list(self.levels) or [PUBLIC]
        return tuple(names[: names.index(self.grant.level) + 1]) if self.grant.level in names else (PUBLIC,)

    def withholding_level(self, tool: str) -> str | None:
        """The lowest level that has `tool` when the present one has not; None when it is within reach or nowhere."""
        if tool in self.allowed_tools():
            return None
        return next((name for name, level in self.levels.items() if tool in level.tools), None)


def highest_level(levels: Mapping[str, Level], verified: Iterable[str]) -> str:
    """The highest level whose required gates have all passed; one that requires nothing is not earned but given."""
    passed = set(verified)
    earned = [name for name, level in levels.items() if level.requires and passed.issuperset(level.requires)]
    return earned[-1] if earned else PUBLIC
