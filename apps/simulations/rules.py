"""Judge a simulated conversation from values. Pure; the bot's own opinion is never asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from apps.simulations.schemas import (
    AnsweredCheck,
    CardsCheck,
    Check,
    Cite,
    CitesCheck,
    CostCheck,
    LevelCheck,
    NeverCheck,
    PersonCheck,
    RecordCheck,
    Said,
    SaysCheck,
    SourcedCheck,
    ToneCheck,
)
from llm.language_detection import detect_language


@dataclass(frozen=True)
class Facts:
    """What is true after a conversation, read from rows: the records it may have changed by (book, key), the cards it
    opened, its level, whether a person was asked for, and its cost in US dollars."""

    said: Sequence[Said]
    records: Mapping[tuple[str, str], Mapping[str, object]]
    cards: int
    level: str
    person: bool
    cost_usd: Decimal


def failures(checks: Sequence[Check], facts: Facts) -> list[str]:
    """What is not as the checks want it, a line each."""
    return [line for check in checks for line in _judge(check, facts)]


def _judge(check: Check, facts: Facts) -> list[str]:
    answers = [said.bot for said in facts.said]
    words = "\n".join(answers).lower()
    match check:
        case RecordCheck():
            row = facts.records.get((check.book, check.key))
            found = row.get(check.field) if row is not None else None
            if row is None:
                return [f"record {check.book}/{check.key} is not there"]
            return [] if found == check.equals else [f"{check.book}/{check.key}: {check.field} is {found!r}"]
        case CardsCheck():
            return [] if facts.cards == check.count else [f"{facts.cards} cards were opened, not {check.count}"]
        case CitesCheck():
            cited = [cite for said in facts.said for cite in said.cites]
            return [] if _is_cited(check, cited) else [f"does not cite {check.document} {check.section}".rstrip()]
        case LevelCheck():
            return [] if facts.level == check.level else [f"level is {facts.level!r}, not {check.level!r}"]
        case CostCheck():
            over = facts.cost_usd > check.at_most_usd
            return [f"cost {facts.cost_usd:.4f} USD, more than {check.at_most_usd}"] if over else []
        case SaysCheck():
            return [f"does not say {word!r}" for word in check.words if word.lower() not in words]
        case NeverCheck():
            return [f"says {word!r}" for word in check.words if word.lower() in words]
        case PersonCheck():
            was = "was" if facts.person else "was not"
            return [] if facts.person == check.wanted else [f"a person {was} asked for"]
        case ToneCheck():
            return _tone(check, answers)
        case AnsweredCheck():
            return [f"message {number} got no answer" for number, text in enumerate(answers, start=1) if not text]
        case SourcedCheck():
            return [
                f"answer {number} cites nothing" for number, said in enumerate(facts.said, start=1) if not said.cites
            ]
        case _:
            assert_never(check)


def _is_cited(wanted: CitesCheck, cited: Sequence[Cite]) -> bool:
    return any(cite.document == wanted.document and wanted.section in ("", cite.section) for cite in cited)


def _tone(check: ToneCheck, answers: Sequence[str]) -> list[str]:
    found = []
    longest = max((len(text.split()) for text in answers), default=0)
    if check.most_words is not None and longest > check.most_words:
        found.append(f"an answer has {longest} words, more than {check.most_words}")
    if not check.exclamations and any("!" in text for text in answers):
        found.append("an answer has an exclamation mark")
    if check.language and answers and (spoken := detect_language(answers)) != check.language:
        found.append(f"speaks {spoken!r}, not {check.language!r}")
    return found
