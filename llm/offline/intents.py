"""Classify a message: small talk, a wish for a person, yes or no, a question, a request.

Pure; decided from the text alone.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from llm.offline.words import content, words

_ANY = re.IGNORECASE


class Quantity(Enum):
    """What a question with "how long", "how much" or "how many" waits for."""

    TIME = auto()
    SUM = auto()
    NUMBER = auto()


_POLITE = """there|everyone|everybody|again|all|team|bot|please|so much|very much|a lot|you|now|then|for now
    |for (?:your|the) help|that helped(?: me)?|that (?:was|is) helpful"""
_GREETINGS = (
    "hello|hi+|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|how are you(?: doing)?(?: today)?"
)
_OPENERS = r"(?:(?:ok(?:ay)?|great|perfect|super|cool|nice|good|wonderful)[\s,.!]*)?"
_THANKS_WORDS = """many thanks|thanks?|thank you|thx|ty|cheers|much appreciated
    |(?:that|this|you)(?:'s| is| was| are|'re) (?:great|awesome|wonderful|perfect|very helpful|so helpful|helpful)
    |that helped"""
_GOODBYES = """bye(?:[ -]bye)?|goodbye|good bye|see you|see ya|farewell|good night|that(?:'s| is| was) all
    |have a (?:nice|good|great) (?:day|evening|one|weekend)"""
_YES_WORDS = """yes|yeah|yep|yup|sure|ok(?:ay)?|of course|certainly|please do|go ahead|correct|right|true|absolutely
    |that(?:'s| is) (?:right|correct)"""
_NO_WORDS = "no|nope|nah|not now|not really|wrong|false|never"
_CANCELS = """cancel (?:that|this|it|the request|my request)|never ?mind|forget (?:it|that|about it)
    |stop (?:that|this|it)|leave it|changed my mind|abort"""
_PEOPLE = """human(?: being)?|person|people|agent|operator|representative|rep|advisor|adviser|employee|colleague
    |staff(?: member)?|someone|somebody|team(?: member)?|supervisor|manager"""
_REAL = "an?|the|some|real|live|actual|your|human"
_REACH = """speak|talk|chat|connect(?: me)?|transfer(?: me)?|put me through|hand me over|get me|give me
    |i (?:want|need)|want|ask for"""
_ABOUT_ME_WORDS = r"""\b(?:who|what) are you\b
    |\bare you (?:an? )?(?:\w+ )?(?:bot|human|robot|person|machine|ai|computer|real)\b
    |\bam i (?:talking|speaking|chatting) (?:to|with)\b"""
_CAPABILITY_WORDS = r"""\bwhat (?:can|could|do) you (?:do|help|offer)(?: for me| with| me with| here)?[\s.!?]*$
    |\bhow can you help\b|\bwhat can i (?:do|ask)\b
    |^\s*(?:help|menu|options)[\s.!?]*$"""
_QUESTION_WORDS = """what|whats|when|where|which|who|whose|why|how|do|does|did|is|are|was|were|will|would|can|could|may
    |should|am|has|have|if"""
_DO_IT_WORDS = """i(?:'d| would) (?:like|love)|i (?:want|need|wish|have) to|i want|i need|please|can you|could you
    |would you|will you|help me|how (?:do|can|could) i|how to|let me|can i|could i|may i"""
_IDENTITY_WORDS = "my (?:full )?name is|name:|born|birth(?:day|date)?|dob|date of birth"


def _pattern(template: str, **parts: str) -> re.Pattern[str]:
    """Fill word lists, which may span lines, into a template."""
    joined = {name: re.sub(r"\n\s*", "", part) for name, part in parts.items()}
    return re.compile(re.sub(r"<(\w+)>", lambda slot: f"(?:{joined[slot[1]]})", template), _ANY)


_MOODS = r"""(?:i am|i'm|im|i feel|we are) (?:(?:so|very|really|extremely|quite|just) )*
    (?:frustrated|disappointed|furious|angry|upset|sad|scared|worried|afraid|desperate|devastated|shocked|fed up)
    |(?:this|that|it|everything|you(?: people)?|your service)(?:'s| is| are| was|'re)(?: so| really| just| a)*
    \s(?:ridiculous|useless|terrible|awful|unacceptable|outrageous|disgrace|joke|horrible|nightmare)
    |(?:worst|terrible|awful|horrible) (?:service|company|experience)
    |my \w+ (?:has |just |has just )?(?:died|passed away)"""
_SORROW = _pattern(r"\b<mood>\b", mood=_MOODS)
_GREETING = _pattern(r"^\s*<hello>\b(?:\s+<polite>\b)*[\s,.!?:;-]*", hello=_GREETINGS, polite=_POLITE)
_THANKS = _pattern(
    r"^\s*<opener><thanks>\b(?:[\s,.!]+<polite>\b)*[\s,.!]*$", opener=_OPENERS, thanks=_THANKS_WORDS, polite=_POLITE
)
_GOODBYE = _pattern(r"^\s*<bye>\b(?:\s+<polite>\b)*[\s,.!]*$", bye=_GOODBYES, polite=_POLITE)
_YES = _pattern(r"^\s*<yes>\b[\w\s,.!']*$", yes=_YES_WORDS)
_NO = _pattern(r"^\s*<no>\b[\w\s,.!']*$", no=_NO_WORDS)
_CANCEL = _pattern(r"\b<cancel>\b|^\s*(?:cancel|stop|quit)[\s.!]*$", cancel=_CANCELS)
_PERSON = _pattern(
    r"\b<reach>(?: (?:with|to))?(?: directly)? (?:<real> )*<people>\b(?! (?:to|who|can)\b)"
    r"|^\s*(?:a )?(?:real )?(?:human|person|agent|operator|representative)(?:,? please)?[\s.!?]*$|\bcall me back\b",
    reach=_REACH,
    people=_PEOPLE,
    real=_REAL,
)
_WHY = _pattern(r"^\W*(?:(?:and|but|ok(?:ay)?|so)\W+)*(?:why|how come)(?: not)?\W*$")
_WHY_DECLINED = _pattern(
    r"\b(?:why|how come|reasons?)\b.*\b(?:declin\w+|refus\w+|reject\w+|den(?:ied|y)|turned down|stopped"
    r"|(?:not|n['\u2019]t)(?: \w+)? (?:approved?|allowed|changed?|done|do))\b"
)
_ABOUT_ME = _pattern("<about>", about=_ABOUT_ME_WORDS)
_CAPABILITIES = _pattern("<can>", can=_CAPABILITY_WORDS)
_QUESTION = _pattern(r"^\s*(?:(?:and|but|so|also|ok(?:ay)?,?) )*<question>\b", question=_QUESTION_WORDS)
_DO_IT = _pattern(r"\b<do>\b", do=_DO_IT_WORDS)
_IDENTITY = _pattern(r"\b<identity>(?!\w)", identity=_IDENTITY_WORDS)
_QUANTITIES = {
    Quantity.TIME: re.compile(r"\bhow (?:long|often|soon|late)\b|\bwhen\b|\bopening hours\b|\bdeadline\b", _ANY),
    Quantity.SUM: re.compile(r"\bhow much\b|\bprice\b|\bcosts?\b|\bfees?\b", _ANY),
    Quantity.NUMBER: re.compile(r"\bhow (?:many|far|old|big)\b|\bphone\b|\bnumber\b", _ANY),
}
_PRESENTS = re.compile(r"\b(?:[Ii] am|[Ii]['\u2019]m|[Tt]his is) [A-Z][a-z]+")
_FOLLOW_UP = re.compile(r"^\s*(?:and|what about|how about|also|why|really|is that|does that)\b", _ANY)


def without_greeting(text: str) -> str:
    """The message after "Hello," or "Good morning!"; the whole of it when it does not greet."""
    return _GREETING.sub("", text, count=1)


def is_greeting(text: str) -> bool:
    return bool(_GREETING.match(text)) and not without_greeting(text).strip()


def is_thanks(text: str) -> bool:
    return bool(_THANKS.match(text))


def is_goodbye(text: str) -> bool:
    return bool(_GOODBYE.match(text))


def is_sorrow(text: str) -> bool:
    """A short message of anger, fear or grief that asks for nothing."""
    return bool(_SORROW.search(text)) and len(words(text)) <= 12 and not looks_like_question(text)


def is_yes(text: str) -> bool:
    return bool(_YES.match(text)) and len(words(text)) <= 6


def is_no(text: str) -> bool:
    return bool(_NO.match(text)) and len(words(text)) <= 6


def is_cancel(text: str) -> bool:
    return bool(_CANCEL.search(text)) and len(words(text)) <= 12


def wants_person(text: str) -> bool:
    return bool(_PERSON.search(text))


def asks_why(text: str) -> bool:
    """Nothing but "why?" or "why not?"."""
    return bool(_WHY.match(text))


def asks_why_declined(text: str) -> bool:
    return bool(_WHY_DECLINED.search(text)) and len(words(text)) <= 16


def asks_about_me(text: str) -> bool:
    return bool(_ABOUT_ME.search(text)) and len(words(text)) <= 12


def asks_capabilities(text: str) -> bool:
    return bool(_CAPABILITIES.search(text)) and len(words(text)) <= 10


def looks_like_question(text: str) -> bool:
    return bool(_QUESTION.match(text)) or text.rstrip().endswith(("?", "؟"))


def is_question(text: str) -> bool:
    """A question for knowledge, as opposed to a polite request ("can you change ...") or a wish ("how do I ...")."""
    return looks_like_question(text) and not _DO_IT.search(text)


def quantities(text: str) -> frozenset[Quantity]:
    return frozenset(quantity for quantity, pattern in _QUANTITIES.items() if pattern.search(text))


def introduces(text: str) -> bool:
    return bool(_IDENTITY.search(text) or _PRESENTS.search(text))


def says_who(text: str) -> bool:
    """Tells a name or a date of birth, or is nothing but a short name."""
    return introduces(text) or (len(words(text)) <= 4 and not any(c.isdigit() or c in "?؟" for c in text))


def has_meaning(text: str) -> bool:
    return any(any(letter.isalpha() for letter in word) for word in content(text))


def is_vague(text: str) -> bool:
    """At most one word that carries meaning, such as "theft" or "how long"."""
    return len(words(text)) <= 3 and len(content(text)) <= 1


def is_follow_up(text: str) -> bool:
    return bool(_FOLLOW_UP.match(text)) or len(content(text)) <= 1
