"""Change the personality of a deployment, and record what moves the mood of a conversation. Inside a scope.

Owners move the baseline; what a visitor writes moves the mood of its conversation only, bounded and rate-limited
(spec 5.14, trust boundary for feedback). Nothing here is read by gates, levels, approvals or checks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.persona import rules
from apps.persona.enums import Axis, EventSource, EventType, Preset
from apps.persona.models import PersonaEvent, PersonaState
from apps.persona.schemas import Tone
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_log = logging.getLogger(__name__)
# A conversation's mood moves at most once in this many seconds, however many messages arrive.
_SECONDS_BETWEEN_MOODS = 20


def choose_preset(deployment: Deployment, preset: Preset, *, actor: str) -> PersonaState:
    """Set the axes of a preset; `off` and `custom` keep the axes."""
    state = _locked(deployment)
    axes = dict(rules.axes_of(state.baseline_axes))
    if preset not in (Preset.OFF, Preset.CUSTOM):
        axes = dict(rules.preset_axes(preset))
    return _write(state, axes, preset, EventType.PRESET_CHOSEN, actor)


def set_axes(deployment: Deployment, axes: Mapping[str, float], *, actor: str) -> PersonaState:
    """Set all or some axes, 0 to 1. Raises `SilasError("invalid_persona")` for an unknown axis or value."""
    _check(axes, least=0.0)
    state = _locked(deployment)
    changed = {**rules.axes_of(state.baseline_axes), **axes}
    return _write(state, changed, Preset.CUSTOM, EventType.TUNED, actor)


def tune(deployment: Deployment, deltas: Mapping[str, float], *, actor: str) -> PersonaState:
    """Move axes of the baseline by these differences, clamped to 0..1. Raises as `set_axes`."""
    _check(deltas, least=-1.0)
    state = _locked(deployment)
    changed = rules.moved(rules.axes_of(state.baseline_axes), deltas, most=1.0)
    return _write(state, changed, Preset.CUSTOM, EventType.TUNED, actor)


def give_feedback(deployment: Deployment, kind: EventType, *, actor: str) -> PersonaState:
    """An owner's judgement moves the baseline by a small step. Raises `SilasError("invalid_persona")` for an event that
    is no judgement."""
    if kind not in rules.AXIS_DELTAS:
        raise SilasError(ErrorCode.INVALID_PERSONA, extra={"fields": {"type": str(kind)}})
    state = _locked(deployment)
    changed = rules.moved(rules.axes_of(state.baseline_axes), rules.AXIS_DELTAS[kind], rules.MOST_AXIS_STEP)
    preset = Preset(state.active_preset)
    return _write(state, changed, preset, kind, actor)


def move_mood(
    kept: Mapping[str, object], events: list[EventType], *, deployment_id: UUID, session_id: UUID
) -> dict[str, object]:
    """Return what a conversation keeps of its mood after a turn, and record the events. `kept` is what it kept before:
    moods and `at`, the time of its last change in ISO 8601; unchanged without events or too soon after the last."""
    moment = now()
    mood = current_mood(kept, moment)
    last = _time_of(kept)
    if not events or (last is not None and (moment - last).total_seconds() < _SECONDS_BETWEEN_MOODS):
        return dict(kept)
    rows = []
    for event in events:
        before, mood = mood, rules.moved(mood, rules.MOOD_DELTAS.get(event, {}), rules.MOST_MOOD_STEP)
        deltas = {name: round(mood[name] - before[name], 4) for name in mood if mood[name] != before[name]}
        rows.append(
            PersonaEvent(
                deployment_id=deployment_id,
                session_id=session_id,
                event_type=event,
                trusted=False,
                delta_mood=deltas,
                source=EventSource.RUNTIME,
            )
        )
    PersonaEvent.objects.bulk_create(rows)
    return {**mood, "at": moment.isoformat()}


def tone_of_turn(baseline: rules.Axes, kept_mood: Mapping[str, object], text: str, *, in_group: bool = False) -> Tone:
    """Return the tone for a message. A stored mood that cannot be read counts as neutral: a personality never stops a
    turn."""
    context = rules.detect_context(text, in_group=in_group)
    try:
        mood = current_mood(kept_mood, now())
    except (TypeError, ValueError):
        _log.warning("persona_mood_unreadable")
        mood = rules.NEUTRAL_MOOD
    axes = rules.effective_axes(baseline, context, mood)
    return Tone(context, rules.levels_of(axes), axes[Axis.INITIATIVE])


def current_mood(kept: Mapping[str, Any], moment: datetime) -> rules.Moods:
    """The mood of a conversation at `moment`, decayed since its last change."""
    last = _time_of(kept)
    mood = rules.mood_of({name: value for name, value in kept.items() if name != "at"})
    return mood if last is None else rules.decayed(mood, (moment - last).total_seconds() / 3600)


def _time_of(kept: Mapping[str, object]) -> datetime | None:
    return datetime.fromisoformat(str(kept["at"])) if "at" in kept else None


def _check(values: Mapping[str, float], *, least: float) -> None:
    wrong = {name: str(value) for name, value in values.items() if name not in Axis.values or not least <= value <= 1.0}
    if wrong:
        raise SilasError(ErrorCode.INVALID_PERSONA, extra={"fields": wrong})


def _locked(deployment: Deployment) -> PersonaState:
    PersonaState.objects.bulk_create([PersonaState(deployment=deployment)], ignore_conflicts=True)
    return PersonaState.objects.select_for_update(no_key=True).get(deployment=deployment)


def _write(
    state: PersonaState, axes: Mapping[str, float], preset: Preset, event: EventType, actor: str
) -> PersonaState:
    before = rules.axes_of(state.baseline_axes)
    deltas = {name: round(axes[name] - before[name], 4) for name in axes if axes[name] != before[name]}
    if not deltas and state.active_preset == preset:
        return state
    preset_before = state.active_preset
    state.baseline_axes, state.active_preset, state.updated_at = dict(axes), preset, now()
    state.save(update_fields=["baseline_axes", "active_preset", "updated_at"])
    PersonaEvent.objects.create(
        deployment_id=state.deployment_id,
        event_type=event,
        trusted=True,
        delta_axes=deltas,
        source=EventSource.OWNER_FEEDBACK,
    )
    record(
        AuditEvent.PERSONA_CHANGED,
        actor=actor,
        subject=f"deployment:{state.deployment_id}",
        data={
            "event": event,
            "preset_before": preset_before,
            "preset": preset,
            "percent_before": {name: round(before[name] * 100) for name in deltas},
            "percent_after": {name: round(axes[name] * 100) for name in deltas},
        },
    )
    return state
