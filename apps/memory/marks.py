"""Find in a text what no memory should make true by repetition: instructions to the bot, and claims about rights.

Instructions are found by the detector of the gates for content that a model reads; what it scores below the threshold
of writing (`memories.clean_content`) may still be one. A claim about rights says who the visitor is allowed to be, or
what they are always to be given. A marked text is not promoted, and a card that shows it says so.
"""

from __future__ import annotations

import re
from enum import StrEnum

from apps.gates.detectors.catalogue import detects


class Mark(StrEnum):
    INSTRUCTIONS = "instructions"
    RIGHTS = "rights"


_RIGHTS = re.compile(
    r"\b(?:i am|i['\u2019]m|he is|she is|they are|(?:customer|visitor|user) is)\s+(?:(?:an?|the|your|already)\s+)*"
    r"(?:admin\w*|owner|manager|staff|employee|developer|verified|authori[sz]ed|allowed|entitled|approved|exempt)\b"
    r"|\b(?:always|never|automatically|must|without (?:asking|approval|verification|checking))\b.{0,60}"
    r"\b(?:refund|approve|verif|grant|allow|discount|credit|waive|ask|check|free)\w*"
    r"|\b(?:refund|approve|grant|allow|discount|credit|waive)\w*\b.{0,60}"
    r"\b(?:always|automatically|without (?:asking|approval|verification|checking))\b",
    re.IGNORECASE,
)


def find_marks(text: str) -> tuple[Mark, ...]:
    """The marks of a text, in order."""
    found = []
    if detects("injection", text):
        found.append(Mark.INSTRUCTIONS)
    if _RIGHTS.search(text):
        found.append(Mark.RIGHTS)
    return tuple(found)
