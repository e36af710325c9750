"""Names of the personality: axes, moods, contexts, presets and events (spec 5.1.4, contract silas 2 and 11)."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Axis(TextChoices):
    """A dimension of style, 0 to 1."""

    WARMTH = "warmth", _("Warmth")
    ASSERTIVENESS = "assertiveness", _("Assertiveness")
    VERBOSITY = "verbosity", _("Length")
    FORMALITY = "formality", _("Formality")
    HUMOR = "humor", _("Humor")
    INITIATIVE = "initiative", _("Initiative")
    CERTAINTY = "certainty", _("Certainty")


class Mood(StrEnum):
    """A dimension of mood, 0 to 1; 0.5 is neutral."""

    ENERGY = "energy"
    PATIENCE = "patience"
    CURIOSITY = "curiosity"
    FRUSTRATION = "frustration"


class Context(StrEnum):
    """What kind of conversation it is just now; each shifts the axes."""

    DEFAULT = "default"
    CASUAL_CHAT = "casual_chat"
    CRISIS = "crisis"
    DEEP_RESEARCH = "deep_research"
    CODE_REVIEW = "code_review"
    GROUP_CHAT = "group_chat"


class Preset(TextChoices):
    """A named set of axes. `OFF`: only the sentences of the deployment's persona are told to models."""

    OFF = "off", _("Off: only the persona below")
    DEFAULT = "default", _("Balanced")
    WORK = "work", _("Businesslike")
    REVIEW = "review", _("Thorough")
    CHILL = "chill", _("Relaxed")
    CUSTOM = "custom", _("Custom")


class EventType(TextChoices):
    """What moves a mood or a baseline."""

    COMPLIMENT = "compliment", _("Compliment")
    TASK_COMPLETED = "task_completed", _("Task completed")
    BLOCKED = "blocked", _("Blocked")
    LONG_SESSION = "long_session", _("Long conversation")
    TOO_HARSH = "too_harsh", _("Too harsh")
    TOO_SOFT = "too_soft", _("Too soft")
    TOO_WORDY = "too_wordy", _("Too long")
    TOO_BRIEF = "too_brief", _("Too short")
    TUNED = "tuned", _("Axes changed")
    PRESET_CHOSEN = "preset_chosen", _("Preset chosen")


class EventSource(TextChoices):
    """Who moved it."""

    RUNTIME = "runtime", _("Conversation")
    OWNER_FEEDBACK = "owner_feedback", _("Owner")
