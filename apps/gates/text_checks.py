"""Check texts with a detector: `custom` runs ours here, `guardrails_ai` runs the same ones under that library.

A text that is too long to read, and an unknown detector or setting, block. With `on_fail: fix` the findings are
redacted and the turn continues; otherwise they block (spec 5.5.1). Called by `providers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apps.gates import rules
from apps.gates.detectors.catalogue import InvalidSetting, detect, is_fixing, threshold
from apps.gates.detectors.findings import Detection
from apps.gates.detectors.normalise import Spellings
from apps.gates.enums import GateAction, GateCode
from apps.gates.rules import Answer

Judge = Callable[[str, str, Mapping[str, object], Spellings], tuple[bool, Detection]]


def judge_text(
    name: str | None,
    value: object,
    config: Mapping[str, object],
    *,
    judge: Judge | None = None,
    spellings: Spellings | None = None,
) -> Answer:
    """Check one text. `judge` returns whether it fails and what was found; `fails` by default. `spellings` are shared
    by the run, so that a text which several gates check is normalised once."""
    # What is not read to its end is blocked, or a long text would be a way past every check (fail closed).
    if not isinstance(value, str) or len(value) > rules.MAX_TEXT:
        return Answer(GateAction.BLOCK, GateCode.UNREADABLE, "No text, or it's too long to check")
    try:
        fixing = is_fixing(config)
        failed, detection = (judge or fails)(name or "", value, config, spellings or Spellings())
    except InvalidSetting as wrong:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, f"The check is misconfigured: {wrong}")
    if not failed:
        return rules.PASS
    if fixing and detection.redacted is not None:
        return rules.PASS._replace(reason=_reason(detection), changed=detection.redacted)
    return Answer(GateAction.BLOCK, GateCode.FOUND, _reason(detection))


def fails(name: str, text: str, config: Mapping[str, object], spellings: Spellings) -> tuple[bool, Detection]:
    least = threshold(name, config)
    detection = detect(name, text, config, spellings)
    return detection.score >= least, detection


def _reason(detection: Detection) -> str:
    """Names kinds only: a reason is shown and stored, and the findings themselves must not be."""
    return f"Found: {', '.join(detection.kinds).lower()}"
