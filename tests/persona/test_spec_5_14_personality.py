"""Spec 5.14 and 5.15: effective axes, moods, sentences for models, and the log."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from hypothesis import given
from hypothesis import strategies as st

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.persona import directives, queries, rules, services
from apps.persona.enums import Axis, Context, EventType, Mood, Preset
from apps.persona.models import PersonaEvent
from apps.tenants.models import Deployment
from kernel import clock
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.context.budget import count_tokens

share = st.floats(0, 1)
axes = st.fixed_dictionaries(dict.fromkeys(Axis, share))
moods = st.fixed_dictionaries(dict.fromkeys(Mood, share))


@given(axes, st.sampled_from(Context), moods)
def test_effective_axes_are_the_clamped_sum_and_stay_between_zero_and_one(
    baseline: Any, context: Context, mood: Any
) -> None:
    effective = rules.effective_axes(baseline, context, mood)
    assert set(effective) == set(Axis)
    assert all(0 <= value <= 1 for value in effective.values())


def test_neutral_mood_and_default_context_leave_the_baseline() -> None:
    assert rules.effective_axes(rules.BASELINE, Context.DEFAULT, rules.NEUTRAL_MOOD) == rules.BASELINE


@pytest.mark.parametrize(
    ("context", "axis", "expected"),
    [
        (Context.CODE_REVIEW, Axis.ASSERTIVENESS, 0.95),
        (Context.CASUAL_CHAT, Axis.HUMOR, 0.70),
        (Context.CRISIS, Axis.VERBOSITY, 0.00),
        (Context.CRISIS, Axis.INITIATIVE, 1.00),
        (Context.GROUP_CHAT, Axis.VERBOSITY, 0.10),
        (Context.DEEP_RESEARCH, Axis.CERTAINTY, 0.60),
    ],
)
def test_context_shifts_an_axis_as_the_specification_says(context: Context, axis: Axis, expected: float) -> None:
    assert rules.effective_axes(rules.BASELINE, context, rules.NEUTRAL_MOOD)[axis] == pytest.approx(expected)


def test_frustration_makes_the_tone_less_warm_and_more_assertive() -> None:
    frustrated = {**rules.NEUTRAL_MOOD, Mood.FRUSTRATION: 1.0}
    effective = rules.effective_axes(rules.BASELINE, Context.DEFAULT, frustrated)
    assert effective[Axis.WARMTH] == pytest.approx(0.35)
    assert effective[Axis.ASSERTIVENESS] == pytest.approx(0.925)


@given(moods, st.floats(0, 1000))
def test_mood_decays_towards_neutral_and_never_crosses_it(mood: Any, hours: float) -> None:
    for name, after in rules.decayed(mood, hours).items():
        assert abs(after - 0.5) <= abs(mood[name] - 0.5)
        assert (after - 0.5) * (mood[name] - 0.5) >= 0


def test_mood_decays_by_a_tenth_an_hour() -> None:
    assert rules.decayed({Mood.ENERGY: 0.9}, 2)[Mood.ENERGY] == pytest.approx(0.7)


@given(axes)
def test_models_read_sentences_of_200_to_400_tokens_without_numbers(baseline: Any) -> None:
    told = directives.render(rules.levels_of(baseline))
    assert 200 <= count_tokens(told) <= 400
    assert not any(character.isdigit() for character in told)


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("URGENT: my kitchen is flooded", Context.CRISIS),
        ("hello there", Context.CASUAL_CHAT),
        ("Can you compare the two policies?", Context.DEEP_RESEARCH),
        ("What is my excess?", Context.DEFAULT),
        ("Hello, there was an accident", Context.CRISIS),
        ("Please do a code review of my pull request", Context.CODE_REVIEW),
        ("It fails:\n```\nprint(x)\n```", Context.CODE_REVIEW),
    ],
)
def test_context_is_detected_by_words(text: str, context: Context) -> None:
    assert rules.detect_context(text) == context


def test_conversation_with_a_person_of_the_company_is_a_group_chat_unless_words_say_more() -> None:
    assert rules.detect_context("What is my excess?", in_group=True) == Context.GROUP_CHAT
    assert rules.detect_context("URGENT: my kitchen is flooded", in_group=True) == Context.CRISIS


def test_preset_is_stored_logged_and_audited(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.WORK, actor="user:1")
        baseline = queries.baseline_of(deployment.pk).value
        (event,) = queries.newest_events(deployment.pk)
    assert baseline is not None
    assert baseline[Axis.FORMALITY] == 0.70
    assert event.trusted
    assert event.event_type == EventType.PRESET_CHOSEN
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.PERSONA_CHANGED)
    assert json.loads(entry.data)["preset"] == "work"


def test_off_tells_models_nothing(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.WORK, actor="user:1")
        services.choose_preset(deployment, Preset.OFF, actor="user:1")
        assert queries.baseline_of(deployment.pk).value is None


def test_owners_feedback_moves_the_baseline_by_a_small_step(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.DEFAULT, actor="user:1")
        state = services.give_feedback(deployment, EventType.TOO_HARSH, actor="user:1")
    assert state.baseline_axes[Axis.ASSERTIVENESS] == pytest.approx(0.70)


def test_event_that_is_no_judgement_is_refused(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError, match="axis") as refusal:
        services.give_feedback(deployment, EventType.COMPLIMENT, actor="user:1")
    assert refusal.value.code == "invalid_persona"


@pytest.mark.parametrize("axes", [{"charm": 0.5}, {"warmth": 1.5}, {"warmth": float("nan")}])
def test_unknown_axis_or_value_is_refused_and_nothing_changes(
    tenant: Any, deployment: Deployment, axes: dict[str, float]
) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refusal:
        services.set_axes(deployment, axes, actor="user:1")
    assert refusal.value.code == "invalid_persona"
    with tenant_scope(tenant):
        assert queries.state_of(deployment.pk) is None


def test_what_a_visitor_writes_moves_the_mood_of_the_conversation_only(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.DEFAULT, actor="user:1")
        before = queries.baseline_of(deployment.pk).value
        kept = services.move_mood(
            {}, [EventType.COMPLIMENT] * 50, deployment_id=deployment.pk, session_id=deployment.pk
        )
        assert queries.baseline_of(deployment.pk).value == before
        assert not queries.newest_events(deployment.pk)[0].trusted
    assert kept[Mood.ENERGY] == 1.0


def test_mood_moves_at_most_once_in_twenty_seconds(
    tenant: Any, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = clock.now()
    monkeypatch.setattr(services, "now", lambda: moment)
    with tenant_scope(tenant):
        kept = services.move_mood({}, [EventType.BLOCKED], deployment_id=deployment.pk, session_id=deployment.pk)
        moment += timedelta(seconds=19)
        again = services.move_mood(kept, [EventType.BLOCKED], deployment_id=deployment.pk, session_id=deployment.pk)
        assert PersonaEvent.objects.count() == 1
    assert again == kept


def test_unreadable_mood_counts_as_neutral() -> None:
    tone = services.tone_of_turn(rules.BASELINE, {"energy": "high", "at": "yesterday"}, "What is my excess?")
    assert tone.levels == rules.levels_of(rules.BASELINE)


@pytest.mark.parametrize("change", ["update", "delete"])
def test_log_is_append_only(tenant: Any, deployment: Deployment, change: str) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.WORK, actor="user:1")
        rows = PersonaEvent.objects.all()
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            rows.delete() if change == "delete" else rows.update(trusted=False)


def test_another_tenant_sees_no_personality(tenant: Any, other_tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.WORK, actor="user:1")
    with tenant_scope(other_tenant):
        assert queries.state_of(deployment.pk) is None
