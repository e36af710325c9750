"""Record where each value of a plan comes from and what started the plan. The record is bound with the plan.

The harness writes it as the first block of the body, so a person's approval covers it. A model cannot write it: its own
blocks of that name are removed, and only the first lines of a body are ever read (ADR 103). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.work.schemas import WorkItemSpec
from kernel.canonical import canonical_json
from kernel.provenance import MADE_UP, Origin, Source, Sources, Traced, least_trusted, parse_number
from llm.calls import PlannedCall
from llm.fences import top_fences

NAME = "origins"
_OPENING = f"```{NAME}\n"
_FIRST = re.compile(rf"\A```{NAME}\n(\{{.*\}})\n```(?:\n|\Z)")


class ValueOrigin(BaseModel):
    """Origin of one argument. `decides`: it decides where something goes; `listed`: the tool allows only a few values,
    of which this is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    origin: Origin
    ref: str = ""
    label: str = ""
    at: str = ""
    decides: bool = False
    listed: bool = False

    @property
    def traced(self) -> Traced:
        return Traced(self.origin, self.ref, self.label, self.at)

    @property
    def is_marked(self) -> bool:
        """An outsider or the model decided where something goes."""
        return self.decides and not self.traced.is_vouched


class PlanOrigins(BaseModel):
    """`calls`: the origin of every argument, call by call. `started`: what started the work. `read`: outside answers
    that the model had read when it wrote the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: tuple[dict[str, ValueOrigin], ...]
    started: ValueOrigin
    read: tuple[str, ...] = ()

    @property
    def is_marked(self) -> bool:
        return any(value.is_marked for call in self.calls for value in call.values())

    def outside(self) -> tuple[Source, ...]:
        """What was read, by name: a follow-up plan inherits it."""
        return tuple(Source(Traced(Origin.TOOL, label=label), "") for label in self.read)

    def is_vouched(self, names: Collection[str]) -> bool:
        """Whether nothing outside was read, and each of these arguments comes from the customer, the company or its
        staff, or is one of a few that the tool lists."""
        values = [value for call in self.calls for name, value in call.items() if name in names]
        return not self.read and all(
            value.traced.is_vouched or (value.listed and not value.decides) for value in values
        )


@dataclass(frozen=True)
class Tracer:
    """Traces the values of a plan: the sources shown to its author, what started it, and who wrote what no source
    holds."""

    shown: Sources
    started: Traced
    otherwise: Traced = MADE_UP

    def origins_of(self, calls: Sequence[tuple[PlannedCall, ToolSpec]]) -> PlanOrigins:
        return PlanOrigins(
            calls=tuple(
                {name: self._value(tool, name, value) for name, value in call.args.items()} for call, tool in calls
            ),
            started=_value_of(self.started),
            read=self.shown.read,
        )

    def _value(self, tool: ToolSpec, name: str, value: object) -> ValueOrigin:
        """Trace one argument. A text worded by the model is only as good as the worst address, account or number in it.
        An undeclared key of an object counts as a value."""
        decides, listed = skill_rules.decides_destination(tool, name, value), skill_rules.has_listed_values(tool, name)
        names = skill_rules.undeclared_names(tool, value)
        traced = least_trusted([self._traced(value), *map(self._traced, names)])
        if traced.origin is not Origin.MODEL:
            return _value_of(traced, decides=decides or bool(skill_rules.destinations_in(value)), listed=listed)
        places = [self._traced(place) for place in skill_rules.destinations_in(value)]
        places += [self._amount(written) for written in skill_rules.amounts_in(value)]
        foreign = [place for place in places if not place.is_vouched]
        return _value_of(least_trusted([traced, *foreign]), decides=decides or bool(foreign), listed=listed)

    def _amount(self, written: str) -> Traced:
        """Trace an amount in a text by whichever reading of it a source holds."""
        traced = [self._traced(reading) for reading in dict.fromkeys(parse_number(written))]
        return next((candidate for candidate in traced if candidate.origin is not Origin.MODEL), self.otherwise)

    def _traced(self, value: object) -> Traced:
        traced = self.shown.trace(value)
        return self.otherwise if traced.origin is Origin.MODEL else traced


# For values of unknown origin: they count as a model's.
UNTRACED = Tracer(Sources(), MADE_UP)


def trace_to(author: Traced) -> Tracer:
    """Return a tracer for values of one known author: staff, the author of a goal, the company's own reading tool."""
    return Tracer(Sources(), author, author)


def _value_of(traced: Traced, *, decides: bool = False, listed: bool = False) -> ValueOrigin:
    return ValueOrigin(
        origin=traced.origin, ref=traced.ref, label=traced.label, at=traced.at, decides=decides, listed=listed
    )


def with_origins(body: str, account: PlanOrigins) -> str:
    """Put the origins before the body, replacing the ones that it begins with."""
    return f"{_OPENING}{canonical_json(account.model_dump(mode='json'))}\n```\n{without_origins(body)}"


def without_origins(body: str) -> str:
    return _FIRST.sub("", body, count=1)


def without_claims(body: str) -> str:
    """Remove the blocks in which a model's body claims origins itself."""
    lines = body.split("\n")
    # From the end, so that the line numbers of the blocks before it stay right.
    for start, end in reversed(list(_blocks(body))):
        del lines[start:end]
    return "\n".join(lines).strip("\n")


def origins_in(body: str) -> PlanOrigins | None:
    """Return the origins that a body begins with; None if the harness wrote none."""
    match = _FIRST.match(body)
    if match is None:
        return None
    try:
        return PlanOrigins.model_validate(json.loads(match[1]))
    except (ValueError, ValidationError):
        return None


def _blocks(body: str) -> Iterator[tuple[int, int]]:
    for token in top_fences(body):
        if token.info.strip() == NAME and token.map:
            yield token.map[0], token.map[1]


def carried_values(body: str, calls: Sequence[PlannedCall]) -> tuple[tuple[object, Traced], ...]:
    """Return the values of an earlier plan with their origins, for a follow-up plan."""
    account = origins_in(body)
    if account is None or len(account.calls) != len(calls):
        return ()
    pairs = zip(calls, account.calls, strict=True)
    return tuple(
        (call.args[name], value.traced) for call, values in pairs for name, value in values.items() if name in call.args
    )


def follow_up_tracer(
    spec: WorkItemSpec, *sources: Source, started: Traced | None = None, otherwise: Traced = MADE_UP
) -> Tracer:
    """Return a tracer for a plan that continues an earlier one: its values keep their origins, and so does what was
    read for it."""
    account = origins_in(spec.body)
    shown = Sources((*(account.outside() if account else ()), *sources), carried_values(spec.body, spec.calls))
    return Tracer(shown, started or (account.started.traced if account else MADE_UP), otherwise)


def origins_after_edit(
    before: str, old: Sequence[PlannedCall], new: Sequence[tuple[PlannedCall, ToolSpec]], by: Traced
) -> PlanOrigins:
    """Return the origins of an edited plan: unchanged values keep theirs, the rest is `by`'s."""
    account = origins_in(before)
    earlier_calls: Sequence[Mapping[str, ValueOrigin]] = (
        account.calls if account and len(account.calls) == len(old) else [{}] * len(old)
    )
    calls = tuple(
        _origins_of_call(values, earlier, call, tool, by)
        for values, earlier, (call, tool) in zip(earlier_calls, old, new, strict=True)
    )
    if account is None:
        return PlanOrigins(calls=calls, started=_value_of(MADE_UP))
    return account.model_copy(update={"calls": calls})


def _origins_of_call(
    values: Mapping[str, ValueOrigin], old: PlannedCall, call: PlannedCall, tool: ToolSpec, by: Traced
) -> dict[str, ValueOrigin]:
    def origin(name: str, value: object) -> ValueOrigin:
        # As JSON, because True and 1 are equal in Python and not in a plan.
        same = name in old.args and canonical_json({"v": old.args[name]}) == canonical_json({"v": value})
        if same and name in values:
            return values[name]
        decides = skill_rules.decides_destination(tool, name, value) or bool(skill_rules.destinations_in(value))
        return _value_of(MADE_UP if same else by, decides=decides)

    return {name: origin(name, value) for name, value in call.args.items()}
