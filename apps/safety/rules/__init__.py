"""May an intended action go on? The five stages in their order, the directive per mode: decided from values alone.

Stage order (spec 004, contract safety-loop 8): step limit, outcome of the step before, patterns, tier, tolerance; the
first that pauses or stops ends the evaluation. Whatever goes wrong in here pauses. No Django, no clock.
"""

from apps.safety.rules.directives import decides, directive
from apps.safety.rules.globs import first_match
from apps.safety.rules.lives import Tries, after_failure, is_over, wait_seconds
from apps.safety.rules.normalising import read, subject_of
from apps.safety.rules.presses import press_risk
from apps.safety.rules.scoring import scored, tier_of
from apps.safety.rules.stages import evaluate
from apps.safety.rules.templates import TEMPLATES

__all__ = [
    "TEMPLATES",
    "Tries",
    "after_failure",
    "decides",
    "directive",
    "evaluate",
    "first_match",
    "is_over",
    "press_risk",
    "read",
    "scored",
    "subject_of",
    "tier_of",
    "wait_seconds",
]
