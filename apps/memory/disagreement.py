"""Ask a person about two confirmed memories of one scope that disagree (spec 6.4).

Compared are memories that a person confirmed or kept, and profiles: figures as in documents, negations, and the values
of what has one value, such as a name or an address. Whether anything else disagrees is for people and models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations

from django.db.models import Q

from apps.memory import questions
from apps.memory.enums import SourceKind, Tier, Trust
from apps.memory.models import MemoryItem, MemoryQuestion, may_be_recalled
from kernel.clock import now
from llm.enums import MemoryType
from llm.offline.contradictions import find_contradiction
from llm.offline.words import words

# Scopes in which something changed since then are compared; of each scope the newest memories; so many questions a run.
_CHANGED, _MOST_COMPARED, _MOST_ASKED = timedelta(days=2), 100, 20
_NOT = frozenset({"not", "never", "no", "don't", "doesn't", "isn't", "aren't", "won't", "can't", "cannot", "wasn't"})
_FULL = {"isn't": "is", "aren't": "are", "doesn't": "does", "don't": "do", "won't": "will", "wasn't": "was"}
_SINGLE_VALUE = re.compile(
    r"(?P<subject>.{2,80}?) (?P<predicate>(?:is|are) (?:called|named)|lives? (?:in|at)|works? (?:at|for)|prefers?"
    r"|was born (?:in|on)) (?P<value>.{1,80})"
)


def ask_about_disagreements() -> int:
    """Open the questions about the scope's memories that disagree, each pair once; returns how many."""
    asked = set(MemoryQuestion.objects.values_list("memory_id", "other_id"))
    count = 0
    for one, other in _comparable():
        if (one.pk, other.pk) not in asked and disagree(one.content, other.content):
            questions.ask_which_is_right(one, other)
            count += 1
            if count >= _MOST_ASKED:
                break
    return count


def disagree(one: str, other: str) -> bool:
    """Whether two statements cannot both be right."""
    return find_contradiction(one, other) is not None or _is_negation(one, other) or _has_other_value(one, other)


def _comparable() -> Iterator[tuple[MemoryItem, MemoryItem]]:
    """Pairs of memories of one scope, the older first."""
    confirmed = MemoryItem.objects.filter(
        ~Q(trust=Trust.WORKING) | Q(source_kind=SourceKind.KEPT_PROPOSAL) | Q(memory_type=MemoryType.PROFILE.value),
        may_be_recalled(),
        tier=Tier.ACTIVE,
    )
    changed = confirmed.filter(updated_at__gt=now() - _CHANGED).order_by("scope").values_list("scope", flat=True)
    for scope in list(changed.distinct()):
        rows = list(confirmed.filter(scope=scope).order_by("-created_at", "pk")[:_MOST_COMPARED])
        yield from combinations(reversed(rows), 2)


def _is_negation(one: str, other: str) -> bool:
    """Whether the same words are affirmed once and denied once."""
    first, second = words(one), words(other)
    denied = [sum(word in _NOT for word in each) % 2 for each in (first, second)]
    return denied[0] != denied[1] and _affirmed(first) == _affirmed(second)


def _affirmed(said: list[str]) -> list[str]:
    return [_FULL.get(word, word) for word in said if word not in _NOT or word in _FULL]


def _has_other_value(one: str, other: str) -> bool:
    first, second = (_SINGLE_VALUE.fullmatch(" ".join(words(text))) for text in (one, other))
    if first is None or second is None:
        return False
    same = first["subject"] == second["subject"] and first["predicate"] == second["predicate"]
    return same and first["value"] != second["value"]
