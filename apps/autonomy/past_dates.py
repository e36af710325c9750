"""Find sentences of a document whose dates have all passed. Pure."""

from __future__ import annotations

import re
from datetime import date

from apps.memory.dates import find_days
from llm.offline.words import sentences

# Only what says until when something holds is outdated by its date; a founding year is not.
_UNTIL = re.compile(r"\b(?:until|till|by|before|valid|ends?|closed|offer|from|between)\b", re.IGNORECASE)
_LONGEST = 400


def outdated_sentences(text: str, today: date) -> list[tuple[str, date]]:
    """The sentences about a time that is over, each with its last date, in order."""
    found = []
    for start, end in sentences(text):
        sentence = " ".join(text[start:end].split())
        dates = find_days(sentence)
        if dates and max(dates) < today and _UNTIL.search(sentence):
            found.append((sentence[:_LONGEST], max(dates)))
    return found
