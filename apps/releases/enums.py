"""Names of releases: their status, and whether a simulation has to pass before one is published."""

from __future__ import annotations

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class ReleaseStatus(TextChoices):
    """`withdrawn`: rolled back, so that conversations leave it; those of a retired release keep it."""

    LIVE = "live", _("Live")
    RETIRED = "retired", _("Replaced")
    WITHDRAWN = "withdrawn", _("Rolled back")


class SimulationRule(TextChoices):
    OFF = "off", _("Not needed")
    WARN = "warn", _("Warn when none passed")
    REQUIRE = "require", _("Required")


class SimulationOutcome(TextChoices):
    """What was known of the simulation when a release was published."""

    PASSED = "passed", _("Passed")
    FAILED = "failed", _("Failed")
    MISSING = "missing", _("Not run")


class ChangeKind(TextChoices):
    """What a difference between two snapshots is about."""

    PERSONA = "persona", _("Persona")
    MODEL = "model", _("Model")
    PRESET = "preset", _("Personality")
    AXIS = "axis", _("Personality axis")
    GREETING = "greeting", _("Greeting")
    SUGGESTIONS = "suggestions", _("Suggestions")
    LANGUAGES = "languages", _("Languages")
    GOAL = "goal", _("Goal")
    GATE = "gate", _("Gate")
    SKILL = "skill", _("Skill")
    KNOWLEDGE = "knowledge", _("Knowledge")
