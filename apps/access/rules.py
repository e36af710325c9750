"""Decide what a visitor can reach: access levels that passed gates raise and time ends (spec 5.6). Pure.

Nothing that anyone says moves a level. A turn and a presence each get one controller, built from the grant on the
conversation's row; nothing is kept between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from kernel.language import gettext

PUBLIC = "public"


def is_over(ends: datetime | None, moment: datetime) -> bool:
    """Whether what lasts until `ends` is over at `moment`: from that very moment on, and never without an end."""
    return ends is not None and ends <= moment


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
    """What the rows say: the level, until when, and which of the tenant's customers it hangs on. `verified` are the
    passed gates, each with the moment at which it counts no longer (a signed identity ends; None: the level's own end
    decides), and `since` says of each when it was passed last. At level public, `expires_at` is the end of what is
    earned by half.
    """

    level: str = PUBLIC
    expires_at: datetime | None = None
    verified: Mapping[str, datetime | None] = field(default_factory=dict)
    customer: str = ""
    customer_name: str = ""
    since: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class AccessController:
    """A grant among the levels of a goal or deployment, whose order is from lowest to highest."""

    levels: Mapping[str, Level]
    grant: Grant
    owner_tools: frozenset[str] | None = None

    def for_owner(self, tools: Iterable[str]) -> AccessController:
        """The controller of a message that an owner signed: levels are for visitors, and bind no owner (spec 5.6).
        Whose records may be read, and what a person has to approve, stays as it was."""
        return replace(self, owner_tools=frozenset(tools))

    @property
    def ends_at(self) -> datetime | None:
        """When what is allowed now is allowed no longer."""
        return self.grant.expires_at if self.owner_tools is None else None

    def at(self, moment: datetime) -> AccessController:
        """The controller at `moment`: a grant that has run out is back at public, and so is one whose level is gone or
        asks in the meantime for gates that were not passed (spec 5.6: a changed goal resets). A level that was
        shortened is shorter for those who already have it."""
        if not self._is_earned(self.grant):
            return replace(self, grant=Grant())
        ends = self._end_by_now(moment)
        if is_over(ends, moment):
            return replace(self, grant=Grant())
        return self if ends == self.grant.expires_at else replace(self, grant=replace(self.grant, expires_at=ends))

    def gate_passed(
        self, gate: str, *, customer: str, customer_name: str, moment: datetime, until: datetime | None = None
    ) -> AccessController:
        """The controller after `gate` passed for `customer`, and counts `until` then at the latest.

        Passing for another customer starts from nothing, and so does passing after the grant has expired. Without a
        customer, or after the end, nothing passes; a gate that no level asks for earns nothing."""
        now = self.at(moment)
        if not customer or (until is not None and until <= moment):
            return now
        kept = now.grant.verified if now.grant.customer == customer else None
        if not any(gate in level.requires for level in self.levels.values()):
            return now if kept is not None else replace(now, grant=Grant())
        still = {name: end for name, end in (kept or {}).items() if end is None or end > moment}
        verified = {**still, gate: until}
        since = {name: now.grant.since[name] for name in still if name in now.grant.since} | {gate: moment}
        level = highest_level(self.levels, verified)
        ends = now._end_of(level, gate, verified, moment)
        return replace(now, grant=Grant(level, ends, verified, customer, customer_name, since)).at(moment)

    def _is_earned(self, grant: Grant) -> bool:
        level = self.levels.get(grant.level)
        return grant.level == PUBLIC or (level is not None and grant.verified.keys() >= set(level.requires))

    def _end_of(
        self, level: str, gate: str, verified: Mapping[str, datetime | None], moment: datetime
    ) -> datetime | None:
        """The first end of all that the level rests on. Its own seconds restart only with a gate that it asks
        for; what is earned by half lasts as long as the longest level that it may lead to."""
        leads_to = [each for each in self.levels.values() if gate in each.requires]
        rests_on = set(verified) if level == PUBLIC else set(self.levels[level].requires)
        if level == PUBLIC:
            own = _latest(_after(moment, each.expires_after) for each in leads_to)
        elif level == self.grant.level and gate not in rests_on:
            own = self.grant.expires_at
        else:
            own = _after(moment, self.levels[level].expires_after)
        return _earliest([own, *(verified[name] for name in rests_on)])

    def _end_by_now(self, moment: datetime) -> datetime | None:
        """The grant's own end, or what the level as it is now makes of its gates, whichever comes first. Of a grant
        that does not say when its gates were passed, and has no end, a level that has one is over."""
        grant = self.grant
        if grant.level == PUBLIC:
            return grant.expires_at
        level = self.levels[grant.level]
        ends = [grant.expires_at, *(grant.verified[name] for name in level.requires)]
        if level.expires_after is not None:
            passed = [grant.since[name] for name in level.requires if name in grant.since]
            ends.append(_after(max(passed), level.expires_after) if passed else grant.expires_at or moment)
        return _earliest(ends)

    @property
    def subject(self) -> str:
        """The customer for whom anything may be read or done: none below the level that verifies identity, so that one
        of two required checks opens nothing yet."""
        return "" if self.grant.level == PUBLIC else self.grant.customer

    def allowed_tools(self) -> frozenset[str]:
        if self.owner_tools is not None:
            return self.owner_tools
        level = self.levels.get(self.grant.level)
        return frozenset(level.tools) if level else frozenset()

    def reached_levels(self) -> tuple[str, ...]:
        """The level and all below it, lowest first: what a collection's minimum level is held against."""
        names = list(self.levels) or [PUBLIC]
        if self.owner_tools is not None:
            return tuple(names)
        return tuple(names[: names.index(self.grant.level) + 1]) if self.grant.level in names else (PUBLIC,)

    def withholding_level(self, tool: str) -> str | None:
        """The lowest level that has `tool` when the present one has not; None when it is within reach or nowhere."""
        if tool in self.allowed_tools():
            return None
        return next((name for name, level in self.levels.items() if tool in level.tools), None)


def _after(moment: datetime, seconds: int | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=seconds)


def _earliest(ends: Iterable[datetime | None]) -> datetime | None:
    """None is no end: it comes after all others."""
    return min((end for end in ends if end is not None), default=None)


def _latest(ends: Iterable[datetime | None]) -> datetime | None:
    listed = list(ends)
    return None if None in listed else max(end for end in listed if end is not None)


def highest_level(levels: Mapping[str, Level], verified: Iterable[str]) -> str:
    """The highest level whose required gates have all passed; one that requires nothing is not earned but given."""
    passed = set(verified)
    earned = [name for name, level in levels.items() if level.requires and passed.issuperset(level.requires)]
    return earned[-1] if earned else PUBLIC


def tools_problem(listed: object, known: Collection[str]) -> str:
    """A level may name tools that there are."""
    unknown = gettext("{wrong} isn't a tool of this deployment. Available: {there}.")
    return _names_problem(listed, known, unknown)


def requires_problem(listed: object, known: Collection[str], *, is_public: bool) -> str:
    """A level above public needs gates that verify identity; public needs none."""
    unknown = gettext("{wrong} isn't a gate that verifies identity. Available: {there}.")
    if problem := _names_problem(listed, known, unknown):
        return problem
    if is_public:
        return gettext("The level public needs no gate: every visitor has it.") if listed else ""
    return "" if listed else gettext("Add at least one gate: without one, every visitor would have this level.")


def _names_problem(listed: object, known: Collection[str], unknown: str) -> str:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        return gettext('Give a list of names, such as ["{known}"].').format(known=min(known, default="name"))
    wrong = [name for name in listed if name not in known]
    there = ", ".join(sorted(known)) or gettext("none")
    return unknown.format(wrong=wrong[0][:80], there=there) if wrong else ""
