"""Split a hint into clauses, and separate a clause's data (quotations, search terms, subjects) from what it does.

"read the documentation about DROP TABLE" reads; "read it, then drop table users" has a second clause that acts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_QUOTED = re.compile(
    r"""(?<![\w\\])"[^"\n]{1,400}"(?!\w)|(?<![\w\\])'[^'\n]{1,400}'(?!\w)|\u201c[^\u201c\u201d\n]{1,400}\u201d|\u00ab[^\u00ab\u00bb\n]{1,400}\u00bb"""
)
# Where another action may begin. Quotations are removed before, so that none is cut in two.
_BREAK = re.compile(
    r"[;|\n\r`]|&|\$\(|<\(|[.,:!?](?=\s)|[()]|\s[\u2013\u2014-]\s"
    r"|\b(?:and(?! (?:its|their|his|her|our|my|your|the|an?|any|other|whether|how|what|who|when)\b)|then|(?<!how )(?<!where )(?<!whether )(?<!when )to|by|before|after|while|so|but|plus|also|next|finally|afterwards|which|or|until|unless|via|using)\b"
)
_SUBJECT = re.compile(
    r"\b(?:about|for|on|regarding|concerning|mentioning|containing|matching|titled|named|called|describing|explaining"
    r"|how|why|what|whether)\b"
)
# An imperative that the table of verbs does not know: "ship the customer list" is not reading a list.
_IMPERATIVE = re.compile(
    r"\s*(?:please |now |just |i will |i'll |let me |we will |going to )*([a-z]+) (?:the|an?|my|our|your|his|her|its|their|all|this"
    r"|that|these|those|every|each)\b"
)
_NO_VERB = (
    "in at of for on with from as into onto is are was were be has have had and or not no if that which who than like"
)
# Questions about something; not proposals, as "how about" and "why not" are.
_QUESTION = re.compile(
    r"\s*(?:what|who|whom|whose|when|where|why|how) (?:am|is|are|was|were|do|does|did|can|could|should|would|has|have|had"
    r"|will|to|many|much|often|long|[a-z]+ed)\b"
)
_SEARCH = re.compile(
    r"\s*(?:search|searching|searches|look up|looking up|lookup)\b[^:]*:\s*$"
    r"|\s*(?:read|reading|open|opening)\b[^:]*\b(?:documentation|docs?|manual|guide|articles?|handbook|faq)\s*:\s*$"
)
_SEPARATE = re.compile(r"(?:^|\s)-{1,2}([a-z]+)")
_HELP = re.compile(
    r"\b(?:password|passphrase|credential|secret|api ?key)s?(?= (?:reset|policy|policies|rules?|requirements?|help|change"
    r"|strength|management|manager|guidelines?|documentation|docs)\b)"
)
_READING_COMMANDS = re.compile(
    r"\s*(?:\$\s*)?(?:"
    r"git (?:-c \S+ )?(?:status|log|diff|show|blame|describe|rev-parse|ls-files|ls-tree|shortlog|grep|remote -v|stash list"
    r"|branch(?: --list| -a| -v+)?\s*$|tag(?: --list| -l)?\s*$)"
    r"|kubectl (?:get|describe|logs|top|version|explain)|docker (?:ps|images|logs|inspect|stats|version)"
    r"|systemctl (?:status|list-units)|journalctl|terraform (?:plan|show|validate)|npm (?:ls|list|view|outdated|audit\s*$)"
    r"|pip (?:list|show|freeze)|helm (?:list|status)|pwd|whoami|hostname|uptime|ls|ll|df|du|ps|top|free|uname|which|whereis"
    r"|wc|file|stat|date|id|env\s*$|man|help)\b"
)


@dataclass(frozen=True)
class Clause:
    """One clause of a normalised hint, with the break that ends it."""

    text: str

    @property
    def is_reading_command(self) -> bool:
        """True for commands that only show something (git status, ls, kubectl get)."""
        return _READING_COMMANDS.match(self.text) is not None

    @property
    def is_question(self) -> bool:
        """True for a clause that asks about something, which is data: "what does DROP TABLE do"."""
        return _QUESTION.match(self.text) is not None

    @property
    def announces_search(self) -> bool:
        """True where the next clause is only what is searched for or read about: "search the articles: refund"."""
        return _SEARCH.match(self.text) is not None

    @cached_property
    def imperative(self) -> str:
        """The clause's first word when it is in the position of an imperative, or ""."""
        match = _IMPERATIVE.match(self.text)
        return "" if match is None or match[1] in _NO_VERB.split() else match[1]

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Words given as options of a command: `find . -delete` has "delete"."""
        return tuple(_SEPARATE.findall(self.text))


def clauses_of(text: str) -> list[Clause]:
    """Split the text into clauses, which joined together give the text. Linear in its length."""
    quoted = [(match.start(), match.end()) for match in _QUOTED.finditer(text)]
    clauses, begin, at = [], 0, 0
    for cut in _BREAK.finditer(text):
        while at < len(quoted) and quoted[at][1] <= cut.start():
            at += 1
        if at < len(quoted) and quoted[at][0] <= cut.start():
            continue
        clauses.append(Clause(text[begin : cut.end()]))
        begin = cut.end()
    return [*clauses, Clause(text[begin:])]


def without_data(clause: Clause) -> str:
    """Text of a reading clause without its data: quotations and the subject that it reads or searches about."""
    if clause.is_question:
        return " "
    text = _HELP.sub(" ", _QUOTED.sub(" ", clause.text))
    subject = _SUBJECT.search(text)
    return text if subject is None else text[: subject.start()] + text[len(text.rstrip()) :]
