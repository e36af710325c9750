"""The five stages of the evaluation, in order; the first that pauses or stops ends it (contract safety-loop 8, 21)."""

from __future__ import annotations

from apps.safety.enums import Decision, Stage, StepOutcome, Tier, Tolerance
from apps.safety.rules.globs import compiled, first_match
from apps.safety.rules.normalising import read, subject_of
from apps.safety.rules.scoring import scored, tier_of
from apps.safety.schemas import LONGEST_HINT, Hint, Intended, Policy, Score, Verdict

# What waits for a person for any reason and is as grave as this waits for a code: one prompt, and never a lighter one.
_GRAVE = (Tier.VERIFY, Tier.DANGER_ZONE)
# Above which score an action of the lightest tier pauses too: the tolerance adds pauses and never takes one away.
THRESHOLDS = {Tolerance.CONSERVATIVE: 25, Tolerance.MODERATE: 50, Tolerance.AGGRESSIVE: 75}


def evaluate(policy: Policy, intended: Intended) -> Verdict:
    """What the policy says of the intended action. Never raises: a fault in here pauses."""
    try:
        return _evaluated(policy, intended)
    except Exception:  # noqa: BLE001 (whatever went wrong, the safe answer is to wait for a person)
        reason = "The evaluation itself failed. A person has to look at it."
        return Verdict(Decision.PAUSE, Stage.FAULT, Tier.CONFIRM, 0, (reason,), reason)


def _evaluated(policy: Policy, intended: Intended) -> Verdict:
    if len(intended.hint) > LONGEST_HINT:
        raise ValueError("a hint longer than anybody reads")
    hint = read(intended.hint)
    score, said = _score(policy, intended.hint, hint)
    tier = tier_of(score.value)
    return (
        _step_limit(policy, intended, tier, score)
        or _outcome(intended, tier, score)
        or _patterns(policy, intended.hint, hint, tier, score)
        or _tier(tier, score, said)
        or _tolerance(policy, tier, score, said)
    )


def _score(policy: Policy, text: str, hint: Hint) -> tuple[Score, str]:
    """The policy's own score for a pattern beats the scorer's; of several the highest."""
    if policy.scores:
        texts = _texts(text, hint)
        fixed = [each for each in policy.scores if any(compiled(each.pattern).matches(one) for one in texts)]
        if fixed:
            highest = max(fixed, key=lambda each: each.score)
            reason = f"The policy scores {highest.pattern!r} with {highest.score}."
            return Score(highest.score, (reason,)), "the policy's own score"
    return scored(hint), "its risk"


def _step_limit(policy: Policy, intended: Intended, tier: Tier, score: Score) -> Verdict | None:
    if not policy.max_steps or intended.steps <= policy.max_steps:
        return None
    reason = f"The step limit of {policy.max_steps} is reached. A person has to let it go on."
    return _waits(Stage.STEP_LIMIT, tier, score, reason)


def _outcome(intended: Intended, tier: Tier, score: Score) -> Verdict | None:
    if intended.outcome != StepOutcome.FAILURE:
        return None
    reason = "The step before failed. A person has to look at it."
    return _waits(Stage.OUTCOME, tier, score, reason)


def _waits(stage: Stage, tier: Tier, score: Score, reason: str) -> Verdict:
    verifies = tier in _GRAVE
    return Verdict(Decision.PAUSE, stage, tier, score.value, (reason,), reason, verifies=verifies)


def _patterns(policy: Policy, text: str, hint: Hint, tier: Tier, score: Score) -> Verdict | None:
    """What forbids is compared with every reading of the hint; what allows, with the hint as it is shown alone, and
    with none that hides something."""
    texts = _texts(text, hint)
    if (denied := first_match(policy.deny, texts)) is not None:
        reason = f"The policy forbids {denied!r}."
        return Verdict(Decision.STOP, Stage.PATTERN, Tier.DANGER_ZONE, score.value, (reason,), reason, verifies=True)
    if (asked := first_match(policy.requires_approval, texts)) is not None:
        reason = f"The policy wants a person's yes for {asked!r}."
        return _waits(Stage.PATTERN, tier, score, reason)
    allowed = None if hint.disguises else first_match(policy.auto_approve, texts[:1])
    if allowed is None:
        return None
    return Verdict(Decision.GO, Stage.PATTERN, tier, score.value, (f"The policy allows {allowed!r}.",))


def _texts(text: str, hint: Hint) -> tuple[str, ...]:
    shown = subject_of(text)
    return (shown, *(each for each in (hint.plain, *hint.readings) if each != shown))


def _tier(tier: Tier, score: Score, said: str) -> Verdict | None:
    if tier is Tier.ADVISORY:
        return None
    factors = (f"Score {score.value} by {said}: {tier.value}.", *score.reasons)
    match tier:
        case Tier.CONFIRM:
            reason = "A person has to confirm this action."
            return Verdict(Decision.PAUSE, Stage.TIER, tier, score.value, factors, reason)
        case Tier.VERIFY:
            reason = "A person has to verify this action with a code."
            return Verdict(Decision.PAUSE, Stage.TIER, tier, score.value, factors, reason, verifies=True)
        case _:
            reason = "This action is too dangerous. The agent is stopped until a person unblocks it."
            return Verdict(Decision.STOP, Stage.TIER, tier, score.value, factors, reason, verifies=True)


def _tolerance(policy: Policy, tier: Tier, score: Score, said: str) -> Verdict:
    factors = (f"Score {score.value} by {said}: {tier.value}.", *score.reasons)
    threshold = THRESHOLDS[policy.tolerance]
    if score.value <= threshold:
        return Verdict(Decision.GO, Stage.TOLERANCE, tier, score.value, factors)
    reason = f"The score is above {threshold}, which this {policy.tolerance.value} policy lets pass."
    return Verdict(Decision.PAUSE, Stage.TOLERANCE, tier, score.value, (*factors, reason), reason)
