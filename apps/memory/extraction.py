"""Read entities and relations from the text of a memory, by fixed patterns and without a model. Pure.

Read are statements of the shapes `X is Y`, `X is called Y`, `X has Y`, `X lives in Y` or `moved to Y`, `X works at Y`,
`X prefers Y`, their dates, causes (`because`, `caused by`, `after that`), numbers of orders and customers, and names of
persons. What a text says is a claim of its author: it is kept with the memory's taint and never followed. Questions and
denials say nothing. The patterns are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from apps.gates.detectors.names import find_names
from apps.memory.dates import find_ranges
from apps.memory.enums import EntityKind, Predicate

MAX_NAME, MAX_VALUE, MAX_STATEMENTS = 120, 200, 20
CUSTOMER = "customer"
# Per cent: said in so many words, concluded from the order of two sentences, only named.
SURE, LIKELY, NAMED = 90, 50, 30
_MOST_WORDS, _MAX_SENTENCES = 8, 60

_SENTENCE = re.compile(r"[^.!?\n;]++(?:\.(?=\w)[^.!?\n;]*+)*+[.!?\n;]?")
_SELF = re.compile(r"\b(?:the |this |our )?(?:customer|user|visitor|client)\b|\b(?:i|me|we)\b", re.IGNORECASE)
_OWN = re.compile(r"\b(?:my|our|(?:the |this )?(?:customer|user|visitor|client)['\u2019]s)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|a|an|this|that|his|her|their|its) ", re.IGNORECASE)
_VERB = re.compile(
    r"(?P<called>\b(?:is|are|was|were)(?: now)? (?:called|named)\b)"
    r"|(?P<lives_in>\b(?:(?:has |have |had )?(?:moved|relocated) to|lives? (?:in|at)|lived (?:in|at))\b)"
    r"|(?P<works_at>\b(?:works?|worked) (?:at|for)\b)"
    r"|(?P<prefers>\bprefer(?:s|red)?\b)"
    r"|(?P<has>\b(?:has|have|owns?)\b)"
    r"|(?P<is>\b(?:is|are|was|were|am)\b|(?<=\bi)['\u2019]m\b)",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|no longer|neither|nor|cannot)\b|n['\u2019]t\b", re.IGNORECASE)
_CAUSE = re.compile(r"\b(?:because(?: of)?|(?:was |were |is )?caused by|due to|as a result of)\b", re.IGNORECASE)
_AFTER = re.compile(r"^\W*(?:after that|as a result|therefore|consequently),? ", re.IGNORECASE)
_REFERENCE = re.compile(
    r"\b(?P<what>order|invoice|ticket|booking|contract|claim|case|customer)(?: (?:number|no\.?|id))?[ :]{1,2}#?"
    r"(?P<number>(?=[A-Z-]{0,6}\d)[A-Z0-9][A-Z0-9-]{1,30})\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"\b(?:on|in|since|from|until|till|during|as of|now|year)$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till) ?$", re.IGNORECASE)
_POINTS_BACK = frozenset(("it", "he", "she", "they", "there", "this", "that", "these", "those", "which", "who", "what"))
_PLAIN = re.compile(r"[\w'\u2019&/#. -]+")


@dataclass(frozen=True)
class Named:
    """An entity as a text names it. `name` is what two texts have in common, `said` how this one spells it."""

    kind: EntityKind
    name: str
    said: str


@dataclass(frozen=True)
class Statement:
    """`subject` `predicate` `object` or `value`, from `since` (None: from when it was written) until `until`."""

    subject: Named
    predicate: Predicate
    object: Named | None = None
    value: str = ""
    since: datetime | None = None
    until: datetime | None = None
    confidence: int = SURE

    @property
    def says(self) -> tuple[str, str, str, str]:
        """What two statements have in common that say the same."""
        return self.subject.name, self.predicate.value, self.object.name if self.object else "", canonical(self.value)


def normalise(text: str) -> str:
    """The text in small letters; a person who speaks of themselves is `customer`."""
    return _SELF.sub(CUSTOMER, _OWN.sub(f"{CUSTOMER}'s", " ".join(text.split()))).casefold()


def canonical(text: str) -> str:
    """The name of an entity: normalised, without an article and signs around it."""
    return _ARTICLE.sub("", normalise(text).strip(" .,:#'\""))[:MAX_NAME].strip()


def read(text: str, *, written_at: datetime, names: Iterable[str] = ()) -> list[Statement]:
    """The statements of a text, at most `MAX_STATEMENTS`, each once. `names`: entities that the memory itself lists."""
    persons = {canonical(text[span.start : span.end]) for span in find_names(text)}
    said: dict[tuple[str, str, str, str], Statement] = {}
    before = ""
    for number, match in enumerate(_SENTENCE.finditer(text)):
        sentence = match[0].strip()
        if number >= _MAX_SENTENCES:
            break
        if sentence and not sentence.endswith("?"):
            for statement in _of_sentence(sentence, before, persons, written_at):
                said.setdefault(statement.says, statement)
            before = sentence.rstrip(".!; ")
    for named in _mentioned(text, persons, names):
        if not any(
            named.name in (each.subject.name, each.object.name if each.object else "") for each in said.values()
        ):
            statement = Statement(named, Predicate.MENTIONED, confidence=NAMED)
            said.setdefault(statement.says, statement)
    return list(said.values())[:MAX_STATEMENTS]


def _of_sentence(sentence: str, before: str, persons: set[str], written_at: datetime) -> Iterator[Statement]:
    if after := _AFTER.match(sentence):
        sentence = sentence[after.end() :]
        if before:
            yield from _caused(sentence, before, LIKELY)
    claim, cause = sentence, _CAUSE.search(sentence)
    if cause:
        head, tail = sentence[: cause.start()].strip(" ,"), sentence[cause.end() :].strip(" ,.")
        if not head and "," in tail:
            tail, head = (part.strip() for part in tail.split(",", 1))
        yield from _caused(head, tail, SURE)
        claim = head
    yield from _claimed(claim, persons, written_at)


def _caused(effect: str, cause: str, confidence: int) -> Iterator[Statement]:
    one, other = _event(effect), _event(cause)
    if one and other and one.name != other.name:
        yield Statement(one, Predicate.CAUSED_BY, other, confidence=confidence)


def _event(text: str) -> Named | None:
    text = text.strip(" .,!;:")
    name = canonical(text)
    return Named(EntityKind.EVENT, name, text[:MAX_NAME]) if name else None


def _claimed(sentence: str, persons: set[str], written_at: datetime) -> Iterator[Statement]:
    """What a sentence of one of the known shapes says of its subject."""
    if _DENIAL.search(sentence):
        return
    since, until, rest = _without_dates(sentence, written_at)
    verb = _VERB.search(rest)
    if verb is None:
        return
    predicate = Predicate(verb.lastgroup or "")
    subject = _noun(rest[: verb.start()], persons)
    value = rest[verb.end() :].strip(" .,!:")[:MAX_VALUE].strip()
    if subject is None or not value or not _PLAIN.match(value):
        return
    if until is not None and since is None and until <= written_at:
        return
    target = _noun(value, persons) if _is_proper(value) else None
    yield Statement(subject, predicate, target, "" if target else value, since, until)


def _without_dates(sentence: str, written_at: datetime) -> tuple[datetime | None, datetime | None, str]:
    """When it began and ended as far as the sentence says so, and the sentence without its dates."""
    since = until = None
    for found in reversed(find_ranges(sentence, today=written_at.date())):
        lead = sentence[: found.at]
        if _UNTIL.search(lead) or sentence[found.at : found.to].lower().startswith("until"):
            until = found.end
        else:
            since = found.start
        sentence = _LEAD.sub("", lead.rstrip(" ,")).rstrip(" ,") + sentence[found.to :]
    if since is not None and until is not None and until <= since:
        until = None
    return since, until, sentence


def _noun(text: str, persons: set[str]) -> Named | None:
    """A short noun phrase as an entity; None for anything else."""
    text = text.strip(" ,:\"'")
    if not text or "," in text or len(text.split()) > _MOST_WORDS or not _PLAIN.fullmatch(text):
        return None
    reference = _REFERENCE.search(text)
    if reference:
        return _numbered(reference)
    name = canonical(text)
    if not name or name in _POINTS_BACK:
        return None
    kind = EntityKind.PERSON if name == CUSTOMER or name in persons else EntityKind.THING
    return Named(kind, name, text[:MAX_NAME])


def _numbered(match: re.Match[str]) -> Named:
    said = f"{match['what']} {match['number']}"
    return Named(EntityKind.REFERENCE, said.casefold()[:MAX_NAME], said[:MAX_NAME])


def _is_proper(value: str) -> bool:
    """Whether it is written as a name: each word with a capital, or a number as of an order."""
    words = value.split()
    return len(words) <= _MOST_WORDS and (
        all(word[:1].isupper() for word in words) or bool(_REFERENCE.fullmatch(value))
    )


def _mentioned(text: str, persons: set[str], names: Iterable[str]) -> Iterator[Named]:
    for match in _REFERENCE.finditer(text):
        yield _numbered(match)
    for name in sorted(persons):
        yield Named(EntityKind.PERSON, name, name)
    for said in names:
        if name := canonical(said):
            yield Named(EntityKind.THING, name, said[:MAX_NAME])
