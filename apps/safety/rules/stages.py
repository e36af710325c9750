"""Evaluate an intended action and tell the agent the verdict (contract safety-loop 7, 8, 16, 21).

Five stages in this order: step limit, outcome of the step before, patterns, tier, tolerance. The first that pauses or
stops ends the evaluation; an error during it pauses.
"""

from __future__ import annotations

from typing import Any

from apps.safety.enums import Decision, Mode, Stage, StepOutcome, Tier, Tolerance
from apps.safety.rules.globs import compile_glob, first_match
from apps.safety.rules.normalization import canonical_text, read_hint
from apps.safety.rules.scoring import score_hint, tier_of
from apps.safety.schemas import MAX_HINT_LENGTH, Hint, Intended, Policy, Score, Verdict

# A pause of these tiers, for any reason, requires a code, so that there is one prompt and never a lighter one.
_CODE_TIERS = (Tier.VERIFY, Tier.DANGER_ZONE)
# Scores above which an action of the lightest tier pauses too: tolerance adds pauses and never removes one.
THRESHOLDS = {Tolerance.CONSERVATIVE: 25, Tolerance.MODERATE: 50, Tolerance.AGGRESSIVE: 75}


def evaluate(policy: Policy, intended: Intended) -> Verdict:
    """Evaluate the intended action. Never raises: an error pauses."""
    try:
        return _run_stages(policy, intended)
    except Exception:  # noqa: BLE001 (after any error the safe answer is to wait for a person)
        reason = "The evaluation itself failed. A person has to review it."
        return Verdict(Decision.PAUSE, Stage.FAULT, Tier.CONFIRM, 0, (reason,), reason)


def _run_stages(policy: Policy, intended: Intended) -> Verdict:
    if len(intended.hint) > MAX_HINT_LENGTH:
        raise ValueError("hint too long")
    hint = read_hint(intended.hint)
    score, source = _score(policy, intended.hint, hint)
    tier = tier_of(score.value)
    if policy.max_steps and intended.steps > policy.max_steps:
        reason = f"The step limit of {policy.max_steps} is reached. A person has to let it go on."
        return _pause(Stage.STEP_LIMIT, tier, score, reason)
    if intended.outcome == StepOutcome.FAILURE:
        return _pause(Stage.OUTCOME, tier, score, "The step before failed. A person has to look at it.")
    return (
        _patterns(policy, intended.hint, hint, tier, score)
        or _tier(tier, score, source)
        or _tolerance(policy, tier, score, source)
    )


def _score(policy: Policy, text: str, hint: Hint) -> tuple[Score, str]:
    """Score the hint, and name the source. A score that the policy fixes for a pattern wins; of several the highest."""
    if policy.scores:
        texts = _texts(text, hint)
        fixed = [rule for rule in policy.scores if any(compile_glob(rule.pattern).matches(each) for each in texts)]
        if fixed:
            highest = max(fixed, key=lambda rule: rule.score)
            reason = f"The policy scores {highest.pattern!r} with {highest.score}."
            return Score(highest.score, (reason,)), "the policy's own score"
    return score_hint(hint), "its risk"


def _pause(stage: Stage, tier: Tier, score: Score, reason: str) -> Verdict:
    verifies = tier in _CODE_TIERS
    return Verdict(Decision.PAUSE, stage, tier, score.value, (reason,), reason, verifies=verifies)


def _patterns(policy: Policy, text: str, hint: Hint, tier: Tier, score: Score) -> Verdict | None:
    """Match the patterns: denials and approvals against every reading of the hint, permissions only against the hint as
    it is shown, and never when it hides something."""
    texts = _texts(text, hint)
    if (denied := first_match(policy.deny, texts)) is not None:
        reason = f"The policy forbids {denied!r}."
        return Verdict(Decision.STOP, Stage.PATTERN, Tier.DANGER_ZONE, score.value, (reason,), reason, verifies=True)
    if (pattern := first_match(policy.requires_approval, texts)) is not None:
        reason = f"The policy requires approval for {pattern!r}."
        return _pause(Stage.PATTERN, tier, score, reason)
    allowed = None if hint.disguises else first_match(policy.auto_approve, texts[:1])
    if allowed is None:
        return None
    return Verdict(Decision.GO, Stage.PATTERN, tier, score.value, (f"The policy allows {allowed!r}.",))


def _texts(text: str, hint: Hint) -> tuple[str, ...]:
    shown = canonical_text(text)
    return (shown, *(reading for reading in (hint.plain, *hint.readings) if reading != shown))


def _tier(tier: Tier, score: Score, source: str) -> Verdict | None:
    if tier is Tier.ADVISORY:
        return None
    reason = {
        Tier.CONFIRM: "A person has to confirm this action.",
        Tier.VERIFY: "A person has to verify this action with a code.",
        Tier.DANGER_ZONE: "This action is too dangerous. The agent is stopped until a person unblocks it.",
    }[tier]
    factors = (f"Score {score.value} by {source}: {tier.value}.", *score.reasons)
    decision = Decision.STOP if tier is Tier.DANGER_ZONE else Decision.PAUSE
    return Verdict(decision, Stage.TIER, tier, score.value, factors, reason, verifies=tier in _CODE_TIERS)


def _tolerance(policy: Policy, tier: Tier, score: Score, source: str) -> Verdict:
    factors = (f"Score {score.value} by {source}: {tier.value}.", *score.reasons)
    threshold = THRESHOLDS[policy.tolerance]
    if score.value <= threshold:
        return Verdict(Decision.GO, Stage.TOLERANCE, tier, score.value, factors)
    reason = f"The score is above {threshold}, the limit of this {policy.tolerance.value} policy."
    return Verdict(Decision.PAUSE, Stage.TOLERANCE, tier, score.value, (*factors, reason), reason)


def is_enforcing(mode: Mode) -> bool:
    """True in the only mode in which agents are held."""
    return mode is Mode.ENFORCING


def directive(mode: Mode, verdict: Verdict | None, *, steps_remaining: int | None = None) -> dict[str, Any]:
    """Build the AutonomyDirective without its notifications. `verdict` None: nothing was evaluated."""
    answer: dict[str, Any] = {"continue": True, "factors": [f"Mode: {mode.value}."]}
    if verdict is not None:
        answer["factors"] = list(verdict.factors) if is_enforcing(mode) else [*answer["factors"], *verdict.factors]
        answer["nextStepRisk"] = verdict.tier.value
    if verdict is not None and is_enforcing(mode) and verdict.decision is not Decision.GO:
        answer |= {"continue": False, "reason": verdict.reason}
        if verdict.decision is Decision.STOP:
            answer["stopped"] = True
    if steps_remaining is not None:
        answer["stepsRemaining"] = steps_remaining
    return answer
