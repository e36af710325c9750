"""Compute effective axes, moods and the sentences that models read (spec 5.14, contract silas 11). Pure.

`effective = clamp(baseline + context + mood + override)`; the override is the preset or the owner's tuning, which are
stored as the baseline. Axes and moods are mappings of names to 0..1. Models read sentences, never numbers: an axis is
low below 0.33, high above 0.67, else middle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from apps.persona.enums import Axis, Context, EventType, Mood, Preset

NEUTRAL = 0.5
DECAY_PER_HOUR = 0.10
# The most that one event moves an axis of the baseline, and a mood.
MOST_AXIS_STEP = 0.05
MOST_MOOD_STEP = 0.10
# Turns after which a conversation is long, again and again.
LONG_SESSION_TURNS = 25
_LOW, _HIGH = 0.33, 0.67

Axes = Mapping[str, float]
Moods = Mapping[str, float]

NEUTRAL_MOOD: Moods = dict.fromkeys(Mood, NEUTRAL)
BASELINE: Axes = {
    Axis.WARMTH: 0.50,
    Axis.ASSERTIVENESS: 0.75,
    Axis.VERBOSITY: 0.30,
    Axis.FORMALITY: 0.30,
    Axis.HUMOR: 0.40,
    Axis.INITIATIVE: 0.70,
    Axis.CERTAINTY: 0.80,
}
_PRESETS: Mapping[Preset, Axes] = {
    Preset.DEFAULT: {},
    Preset.WORK: {Axis.FORMALITY: 0.70, Axis.HUMOR: 0.10, Axis.ASSERTIVENESS: 0.80},
    Preset.CHILL: {Axis.WARMTH: 0.75, Axis.HUMOR: 0.70, Axis.FORMALITY: 0.10, Axis.ASSERTIVENESS: 0.55},
    Preset.REVIEW: {Axis.HUMOR: 0.00, Axis.VERBOSITY: 0.55, Axis.ASSERTIVENESS: 0.90, Axis.CERTAINTY: 0.85},
}
CONTEXT_SHIFTS: Mapping[Context, Axes] = {
    Context.DEFAULT: {},
    Context.CODE_REVIEW: {
        Axis.ASSERTIVENESS: 0.20,
        Axis.CERTAINTY: 0.10,
        Axis.HUMOR: -0.20,
        Axis.VERBOSITY: 0.10,
    },
    Context.CASUAL_CHAT: {Axis.WARMTH: 0.20, Axis.HUMOR: 0.30, Axis.FORMALITY: -0.30, Axis.VERBOSITY: -0.10},
    Context.CRISIS: {
        Axis.VERBOSITY: -0.30,
        Axis.ASSERTIVENESS: 0.20,
        Axis.INITIATIVE: 0.30,
        Axis.HUMOR: -0.50,
    },
    Context.GROUP_CHAT: {Axis.ASSERTIVENESS: -0.10, Axis.VERBOSITY: -0.20, Axis.INITIATIVE: -0.20},
    Context.DEEP_RESEARCH: {
        Axis.VERBOSITY: 0.30,
        Axis.CERTAINTY: -0.20,
        Axis.HUMOR: -0.30,
        Axis.FORMALITY: 0.10,
    },
}
# How far a mood away from neutral moves each axis.
_MOOD_SHIFTS: Mapping[Axis, Moods] = {
    Axis.WARMTH: {Mood.PATIENCE: 0.25, Mood.FRUSTRATION: -0.30},
    Axis.ASSERTIVENESS: {Mood.ENERGY: 0.20, Mood.FRUSTRATION: 0.35, Mood.PATIENCE: -0.15},
    Axis.VERBOSITY: {Mood.ENERGY: 0.30, Mood.CURIOSITY: 0.25},
    Axis.FORMALITY: {Mood.ENERGY: -0.15, Mood.PATIENCE: 0.10},
    Axis.HUMOR: {Mood.ENERGY: 0.20, Mood.CURIOSITY: 0.20, Mood.FRUSTRATION: -0.25},
    Axis.INITIATIVE: {Mood.ENERGY: 0.35, Mood.CURIOSITY: 0.35},
    Axis.CERTAINTY: {Mood.ENERGY: 0.20, Mood.PATIENCE: 0.15, Mood.FRUSTRATION: -0.25},
}
MOOD_DELTAS: Mapping[EventType, Moods] = {
    EventType.TASK_COMPLETED: {Mood.ENERGY: 0.05, Mood.FRUSTRATION: -0.10},
    EventType.BLOCKED: {Mood.FRUSTRATION: 0.08, Mood.PATIENCE: -0.04},
    EventType.COMPLIMENT: {Mood.ENERGY: 0.10},
    EventType.LONG_SESSION: {Mood.ENERGY: -0.05, Mood.PATIENCE: -0.05},
}
AXIS_DELTAS: Mapping[EventType, Axes] = {
    EventType.TOO_HARSH: {Axis.ASSERTIVENESS: -0.05},
    EventType.TOO_SOFT: {Axis.ASSERTIVENESS: 0.05},
    EventType.TOO_WORDY: {Axis.VERBOSITY: -0.05},
    EventType.TOO_BRIEF: {Axis.VERBOSITY: 0.05},
}
_CONTEXT_WORDS: Mapping[Context, re.Pattern[str]] = {
    Context.CRISIS: re.compile(
        r"\b(emergency|urgent(ly)?|burst|flood(ed|ing)?|fire|stolen|accident|injured|hacked|dringend|notfall|unfall"
        r"|gestohlen|urgente|emergencia|urgence|spoed|ongeluk)\b",
        re.IGNORECASE,
    ),
    Context.CODE_REVIEW: re.compile(
        r"```|\b(code review|pull request|merge request|stack ?trace|traceback|refactor\w*|compil(e|es|er) error"
        r"|unit tests?|syntax error|source code|quellcode|código fuente|code source|broncode)\b",
        re.IGNORECASE,
    ),
    Context.DEEP_RESEARCH: re.compile(
        r"\b(compare|comparison|in detail|step by step|explain|difference between|vergleich\w*|ausführlich|compara\w*"
        r"|expli\w+|vergelijk\w*)\b",
        re.IGNORECASE,
    ),
    Context.CASUAL_CHAT: re.compile(
        r"^\W*(hi|hello|hey|good (morning|afternoon|evening)|how are you|hallo|hola|bonjour|salut|goedemorgen)\b",
        re.IGNORECASE,
    ),
}
_COMPLIMENT = re.compile(
    r"\b(thank you|thanks|great job|well done|brilliant|danke|gracias|merci|bedankt|dank je|dank u)\b", re.IGNORECASE
)


def clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def axes_of(stored: Mapping[str, float]) -> Axes:
    """All seven axes, each clamped; a missing one has its value of `BASELINE`."""
    return {axis: clamp(float(stored.get(axis, BASELINE[axis]))) for axis in Axis}


def preset_axes(preset: Preset) -> Axes:
    return {**BASELINE, **_PRESETS.get(preset, {})}


def mood_of(stored: Mapping[str, float]) -> Moods:
    """All four moods, each clamped; a missing one is neutral."""
    return {mood: clamp(float(stored.get(mood, NEUTRAL))) for mood in Mood}


def detect_context(text: str, *, in_group: bool = False) -> Context:
    """Return the context of a visitor's message by its words; an emergency comes before everything else.

    `in_group`: a person of the company takes part in the conversation too.
    """
    usual = Context.GROUP_CHAT if in_group else Context.DEFAULT
    return next((context for context, words in _CONTEXT_WORDS.items() if words.search(text)), usual)


def effective_axes(baseline: Axes, context: Context, mood: Moods) -> Axes:
    shifts = CONTEXT_SHIFTS[context]
    return {axis: clamp(baseline[axis] + shifts.get(axis, 0.0) + _mood_shift(axis, mood)) for axis in Axis}


def _mood_shift(axis: Axis, mood: Moods) -> float:
    return sum(weight * (mood[name] - NEUTRAL) for name, weight in _MOOD_SHIFTS[axis].items())


def decayed(mood: Moods, hours: float) -> Moods:
    """The mood after `hours` without events: each value moves towards neutral and never crosses it."""
    step = DECAY_PER_HOUR * max(0.0, hours)
    return {
        name: max(NEUTRAL, value - step) if value > NEUTRAL else min(NEUTRAL, value + step)
        for name, value in mood.items()
    }


def moved(values: Mapping[str, float], deltas: Mapping[str, float], most: float) -> dict[str, float]:
    """`values` with bounded deltas added and clamped; raises KeyError for an unknown name."""
    changed = dict(values)
    for name, delta in deltas.items():
        changed[name] = round(clamp(changed[name] + min(most, max(-most, delta))), 4)
    return changed


def events_of_turn(text: str, *, blocked: bool, number: int, completed: bool = False) -> list[EventType]:
    """Return what a turn does to the mood. `text` is the visitor's message, `number` counts turns from 1. `completed`:
    work that was promised in the conversation was verified as done since the last message."""
    events = [EventType.BLOCKED] if blocked else []
    if completed:
        events.append(EventType.TASK_COMPLETED)
    if _COMPLIMENT.search(text):
        events.append(EventType.COMPLIMENT)
    if number % LONG_SESSION_TURNS == 0:
        events.append(EventType.LONG_SESSION)
    return events


def levels_of(axes: Axes) -> str:
    """One digit for each axis in the order of `Axis`: 0 low, 1 middle, 2 high."""
    return "".join("0" if axes[axis] < _LOW else "2" if axes[axis] > _HIGH else "1" for axis in Axis)
