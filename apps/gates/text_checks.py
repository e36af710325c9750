"""Who judges texts? `custom` (our detectors, run here) and `guardrails_ai` (the same, run by that library).

A text that cannot be read as a whole, and a detector or setting that does not exist, are blocks. With `on_fail: fix`
what was found is taken out and the turn goes on; otherwise it blocks (spec 5.5.1). Called by `providers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apps.gates import rules
from apps.gates.detectors.catalogue import InvalidSetting, detect, is_fixing, threshold
from apps.gates.detectors.findings import Detection
from apps.gates.detectors.normalise import Spellings
from apps.gates.enums import GateAction, GateCode
from apps.gates.rules import Answer

Judge = Callable[[str, str, Mapping[str, Any], Spellings], tuple[bool, Detection]]


def judge_text(
    name: str | None,
    value: Any,
    config: Mapping[str, Any],
    *,
    judge: Judge | None = None,
    spellings: Spellings | None = None,
) -> Answer:
    """`judge` says whether the text fails, and what was found; our own comparison when none is given. `spellings` are
    those of the run, so that a text which several gates look at is taken apart once."""
    if not isinstance(value, str) or len(value) > rules.MAX_TEXT:
        return Answer(GateAction.BLOCK, GateCode.UNREADABLE, "No text that could be read as a whole")
    try:
        fixing = is_fixing(config)
        failed, found = (judge or fails)(name or "", value, config, spellings or Spellings())
    except InvalidSetting as wrong:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, f"The check is set up wrongly: {wrong}")
    if not failed:
        return rules.PASS
    if fixing and found.redacted is not None:
        return rules.PASS._replace(reason=_reason(found), changed=found.redacted)
    return Answer(GateAction.BLOCK, GateCode.FOUND, _reason(found))


def fails(name: str, text: str, config: Mapping[str, Any], spellings: Spellings) -> tuple[bool, Detection]:
    least = threshold(name, config)
    found = detect(name, text, config, spellings)
    return found.score >= least, found


def _reason(found: Detection) -> str:
    """Kinds only: a reason is shown and kept, and what was found must not be."""
    return f"Found: {', '.join(found.kinds).lower()}"
