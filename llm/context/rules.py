"""Evict items from a full context window: the two tiers of spec 5.7, decided from values alone.

Tier 1 masks old tool results, drops acknowledgements, deactivates stale subscriptions and evicts by each zone's own
order; tier 2 continues, by a scorer's verdict if there is one, until the whole window is below its threshold. Always:
no zone above its room, no pinned item leaves, a group leaves as a whole, order is kept, same input same output.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from llm.context.budget import Allotment, TokenBudget
from llm.context.enums import Kind, Reason, Zone
from llm.context.items import ContextItem, Eviction, Window

# Only dropped where the message before it asked nothing: "yes" after "Shall I go on?" is the whole conversation.
_TRIVIAL = re.compile(r"(ok|okay|thanks|thank you|got it|sure|yes|no|\U0001f44d)\s*[.!?]*", re.IGNORECASE)
_LONGEST_TRIVIAL = 70  # characters: 20 model tokens
_EVICTABLE = (Zone.WORKSPACE, Zone.MEMORY, Zone.CHRONICLE)

Unit = tuple[int, ...]


def enforce_budget(
    items: Sequence[ContextItem], *, budget: TokenBudget, profile: str, turn: int, reserved: int = 0
) -> Window:
    """Both tiers without a model. Raises what `first_tier` raises."""
    return second_tier(first_tier(items, budget=budget, profile=profile, turn=turn, reserved=reserved), budget=budget)


def first_tier(
    items: Sequence[ContextItem], *, budget: TokenBudget, profile: str, turn: int, reserved: int = 0
) -> Window:
    """The rules that always run. `reserved` are model tokens of the system zone that no item stands for (tools, the
    role's own words). Raises `context_pinned_too_large` when what must stay does not fit, and
    `context_profile_unknown`.
    """
    chosen = budget.profile(profile)
    masked, evicted = _mask_old_results(items, turn - budget.observation_mask_after_turns)
    kept, dropped = _remove(masked, _expendable(masked, budget, turn))
    used = _usage_by_zone(kept, reserved)
    return _fit_zones(
        kept, [*evicted, *dropped], used, budget.allotment(chosen, system_tokens=used[Zone.SYSTEM]), profile
    )


def second_tier(
    window: Window, *, budget: TokenBudget, evict: Iterable[Collection[str]] = (), keep: Collection[str] = ()
) -> Window:
    """Evict until the window is at or below the threshold, or only what is pinned is left.

    `evict` are a scorer's groups of ids, least valuable first, `keep` the ids it wants to stay: an id that is unknown,
    pinned or in a group of which something is to be kept is passed over. What it leaves to do, the rules do.
    """
    if window.total <= budget.evict_above:
        return window
    room = _Room(window.items, dict(window.used))
    scored = _scored_units(room, evict, set(keep))
    _evict_while(room, scored, Reason.SCORED, lambda: room.total > budget.evict_above)
    _evict_while(
        room, _fullest_first(room, window.allotment), Reason.WINDOW_FULL, lambda: room.total > budget.evict_above
    )
    return replace(window, items=room.kept(), evicted=(*window.evicted, *room.evicted), used=room.used)


def evictable(window: Window) -> tuple[tuple[ContextItem, ...], ...]:
    """The groups that a scorer may judge: everything unpinned outside the system zone."""
    return tuple(tuple(window.items[place] for place in unit) for unit in _Room(window.items, {}).units)


def placeholder(item: ContextItem) -> str:
    """What stays of an old tool result (spec 5.7): never a summary, which would smooth over a failure."""
    outcome = "FAILED" if item.failed else "SUCCEEDED"
    return f"[Result of {item.tool} ({outcome}) — {item.token_count} tokens — see memory for details]"


def is_trivial(item: ContextItem) -> bool:
    """A visitor's bare acknowledgement (spec 5.7)."""
    if item.kind is not Kind.MESSAGE or item.source != "visitor" or len(item.content) > _LONGEST_TRIVIAL:
        return False
    return _TRIVIAL.fullmatch(item.content.strip()) is not None


class _Room:
    """A window while things leave it: what may go, in whole groups, and what is left."""

    def __init__(self, items: Sequence[ContextItem], used: dict[Zone, int]) -> None:
        self.items, self.used = items, used
        self.evicted: list[Eviction] = []
        self.gone: set[int] = set()
        self.units = _units(items)
        self._by_zone: dict[Zone, list[Unit]] = defaultdict(list)
        for unit in self.units:
            for zone in {items[place].zone for place in unit} if len(unit) > 1 else (items[unit[0]].zone,):
                self._by_zone[zone].append(unit)

    @property
    def total(self) -> int:
        return sum(self.used.values())

    def take(self, unit: Unit, reason: Reason) -> None:
        for place in unit:
            item = self.items[place]
            self.gone.add(place)
            self.used[item.zone] -= item.token_count
            self.evicted.append(_eviction(item, reason))

    def kept(self) -> tuple[ContextItem, ...]:
        return tuple(item for place, item in enumerate(self.items) if place not in self.gone)

    def in_order(self, zone: Zone) -> list[Unit]:
        """The units with a part in `zone`, those to be evicted first at the front."""
        return sorted(self._by_zone[zone], key=partial(_WORTH[zone], self.items))


def _age_key(items: Sequence[ContextItem], unit: Unit) -> tuple[int, int]:
    """Oldest first."""
    first = unit[0]
    return items[first].turn if len(unit) == 1 else min(items[place].turn for place in unit), first


def _relevance_key(items: Sequence[ContextItem], unit: Unit) -> tuple[float, int, int]:
    """Least relevant first; a group counts as its most relevant item."""
    return max(_relevance(items[place]) for place in unit), *_age_key(items, unit)


def _progress_key(items: Sequence[ContextItem], unit: Unit) -> tuple[bool, int, int]:
    """Finished plans before unfinished ones."""
    return not all(items[place].finished for place in unit), *_age_key(items, unit)


_WORTH: Mapping[Zone, Callable[[Sequence[ContextItem], Unit], tuple[float, ...]]] = {
    Zone.CHRONICLE: _age_key,
    Zone.MEMORY: _relevance_key,
    Zone.WORKSPACE: _progress_key,
}


def _relevance(item: ContextItem) -> float:
    # NaN has no order: a sort would depend on where it stands.
    return 0.0 if math.isnan(item.relevance) else item.relevance


def _units(items: Sequence[ContextItem]) -> list[Unit]:
    """Places that leave together, in order of their first; without units of which one item must stay."""
    groups: dict[str | int, list[int]] = defaultdict(list)
    bound: set[str | int] = set()
    for place, item in enumerate(items):
        key = item.group or place
        groups[key].append(place)
        if item.pinned or item.zone is Zone.SYSTEM:
            bound.add(key)
    return [tuple(places) for key, places in groups.items() if key not in bound]


def _mask_old_results(items: Sequence[ContextItem], before: int) -> tuple[list[ContextItem], list[Eviction]]:
    """Replace old tool results by placeholders, unless they are shorter than the placeholder, or pinned."""
    result, evicted = list(items), []
    for place, item in enumerate(items):
        if item.kind is not Kind.TOOL_RESULT or item.masked or item.pinned or item.turn >= before:
            continue
        short = item.masked_as(placeholder(item))
        if short.token_count < item.token_count:
            result[place] = short
            evicted.append(_eviction(item, Reason.MASKED))
    return result, evicted


def _expendable(items: Sequence[ContextItem], budget: TokenBudget, turn: int) -> Iterator[tuple[int, Reason]]:
    """Items that leave even if there is room. An acknowledgement that answers a question carries meaning and stays."""
    after_question = False
    for place, item in enumerate(items):
        if item.kind is Kind.SUBSCRIPTION:
            if not (item.group or item.pinned) and (reason := _subscription_reason(item, budget, turn)):
                yield place, reason
        elif item.kind is Kind.MESSAGE:
            if not (after_question or item.group or item.pinned) and is_trivial(item):
                yield place, Reason.TRIVIAL
            after_question = "?" in item.content or "\uff1f" in item.content


def _subscription_reason(item: ContextItem, budget: TokenBudget, turn: int) -> Reason | None:
    if item.token_count > budget.max_subscription_tokens:
        return Reason.SUBSCRIPTION_TOO_LARGE
    return Reason.STALE_SUBSCRIPTION if turn - item.turn >= budget.subscription_ttl_turns else None


def _remove(
    items: list[ContextItem], leaving: Iterable[tuple[int, Reason]]
) -> tuple[list[ContextItem], list[Eviction]]:
    reasons = dict(leaving)
    if not reasons:
        return items, []
    kept = [item for place, item in enumerate(items) if place not in reasons]
    return kept, [_eviction(items[place], reason) for place, reason in reasons.items()]


def _usage_by_zone(items: Iterable[ContextItem], reserved: int) -> dict[Zone, int]:
    used = dict.fromkeys(Zone, 0)
    used[Zone.SYSTEM] = reserved
    for item in items:
        used[item.zone] += item.token_count
    return used


def _fit_zones(
    items: list[ContextItem], evicted: list[Eviction], used: dict[Zone, int], allotment: Allotment, profile: str
) -> Window:
    kept = tuple(items)
    if any(_is_over(used, allotment, zone) for zone in _EVICTABLE):
        room = _Room(items, used)
        for zone in filter(partial(_is_over, used, allotment), _EVICTABLE):
            _evict_while(room, room.in_order(zone), Reason.ZONE_FULL, partial(_is_over, used, allotment, zone))
        kept, evicted = room.kept(), [*evicted, *room.evicted]
    _require_fit(used, allotment)
    return Window(kept, tuple(evicted), used, allotment, profile)


def _is_over(used: dict[Zone, int], allotment: Allotment, zone: Zone) -> bool:
    return used[zone] > allotment.rooms[zone]


def _require_fit(used: dict[Zone, int], allotment: Allotment) -> None:
    for zone, room in allotment.rooms.items():
        if _is_over(used, allotment, zone):
            raise SilasError(
                # Refused rather than cut: a persona that ends in the middle would be another bot.
                ErrorCode.CONTEXT_PINNED_TOO_LARGE,
                f"What must stay in the {zone.value} zone needs {used[zone]} model tokens, and there are {room}.",
                extra={"zone": zone.value, "needed": used[zone], "room": room},
            )


def _evict_while(room: _Room, units: Iterable[Unit], reason: Reason, needed: Callable[[], bool]) -> None:
    for unit in units:
        if not needed():
            return
        if unit[0] not in room.gone:
            room.take(unit, reason)


def _fullest_first(room: _Room, allotment: Allotment) -> Iterator[Unit]:
    """Units to evict, always from the zone that is fullest for its size, so that no zone pays for the others."""
    waiting = {zone: iter(room.in_order(zone)) for zone in _EVICTABLE}
    while waiting:
        zone = max(waiting, key=lambda candidate: room.used[candidate] / max(allotment.rooms[candidate], 1))
        unit = next(waiting[zone], None)
        if unit is None:
            del waiting[zone]
        else:
            yield unit


def _scored_units(room: _Room, evict: Iterable[Collection[str]], keep: set[str]) -> Iterator[Unit]:
    by_id = {room.items[place].ctx_id: unit for unit in room.units for place in unit}
    for group in evict:
        for ctx_id in group:
            unit = by_id.get(ctx_id)
            if unit and not any(room.items[place].ctx_id in keep for place in unit):
                yield unit


def _eviction(item: ContextItem, reason: Reason) -> Eviction:
    return Eviction(item.ctx_id, item.zone, item.kind, item.token_count, reason, item.taint)
