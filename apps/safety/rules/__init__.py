"""Rules of the safety loop: the five evaluation stages, directives per mode, lockout. Pure.

Stage order (spec 004, contract safety-loop 8): step limit, outcome of the step before, patterns, tier, tolerance; the
first that pauses or stops ends the evaluation. An error during evaluation pauses. No Django, no clock.
"""

from apps.safety.rules.approval_risk import approval_risk
from apps.safety.rules.directives import directive, is_enforcing
from apps.safety.rules.globs import first_match
from apps.safety.rules.lockout import Attempts, after_failure, is_expired, wait_seconds
from apps.safety.rules.normalization import canonical_text, read_hint
from apps.safety.rules.scoring import score_hint, tier_of
from apps.safety.rules.stages import evaluate
from apps.safety.rules.templates import TEMPLATES

__all__ = [
    "TEMPLATES",
    "Attempts",
    "after_failure",
    "approval_risk",
    "canonical_text",
    "directive",
    "evaluate",
    "first_match",
    "is_enforcing",
    "is_expired",
    "read_hint",
    "score_hint",
    "tier_of",
    "wait_seconds",
]
