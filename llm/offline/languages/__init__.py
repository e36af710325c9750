"""Translate between English and the visitor's language for `builtin:grounded`: German, French, Spanish, Dutch
and Arabic.

Small talk is mapped to its English counterpart, and the model's own sentences are translated last, sentence by sentence
(`<language>.yaml`, keyed by the English sentence). Documents are quoted as they are. Earlier messages of the bot are
translated back the same way, so that a conversation may change its language. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from llm.briefing import Briefing, HistoryMessage
from llm.language_detection import ENGLISH, detect_language
from llm.offline import phrases
from llm.offline.moves import Move, Say
from llm.schemas import AgentResponse, RouteDecision

LANGUAGES = ("de", "fr", "es", "nl", "ar")
_FOLDER = Path(__file__).parent
_SHORT = 200


def _whole(words: str) -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:{words})\W*$", re.IGNORECASE)


_DE_PEOPLE = r"mensch\w*|mitarbeiter\w*|person|berater\w*|kolleg\w*|jemande?[mn]?"
_DE_TALK = r"sprechen|reden|verbinden|chatten|schreiben"
_FR_PEOPLE = r"humaine?|personne|conseill\w+|agente?|quelqu['\u2019]un|collègue"
_AR_PEOPLE = r"شخص\w*|موظف\w*|إنسان|بشر\w*|أحد|زميل\w*"
_AR_TALK = r"التحدث|أتحدث|التكلم|أتكلم|الحديث|التواصل|أتواصل"
_NL_PEOPLE = r"mens\w*|medewerker\w*|persoon|adviseur\w*|collega\w*|iemand"
_NL_TALK = r"spreken|praten|doorverbinden|doorverbonden|chatten|schrijven"
_ES_PEOPLE = r"persona|human[oa]|agente|alguien|asesora?|compañer[oa]"
# What a visitor says, as its English counterpart; first match wins.
_SAYS: Mapping[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "de": (
        (
            re.compile(rf"\b(?:{_DE_PEOPLE})\b.*\b(?:{_DE_TALK})\b|\b(?:{_DE_TALK})\b.*\b(?:{_DE_PEOPLE})\b", re.I),
            "person",
        ),
        (_whole(r"(?:hallo|hi|moin|servus|guten (?:morgen|tag|abend))(?: zusammen)?"), "hello"),
        (_whole(r"(?:vielen |herzlichen |besten )?danke?(?: schön| sehr| ihnen| dir)?"), "thanks"),
        (_whole(r"tschü(?:ss|ß)|auf wiedersehen|bis bald|(?:einen )?schönen (?:tag|abend)(?: noch)?"), "bye"),
        (_whole(r"(?:ja|klar|gerne?|genau|in ordnung)(?:,? (?:bitte|gerne?))?"), "yes"),
        (_whole(r"(?:nein|nee|nicht jetzt)(?:,? danke)?"), "no"),
        (_whole(r"(?:schon gut|vergiss es|vergessen sie es|abbrechen|doch nicht)"), "cancel"),
        (
            re.compile(
                r"\bich bin (?:\w+ )?(?:enttäuscht|wütend|verzweifelt|traurig|verärgert)\b"
                r"|\b(?:frechheit|unverschämt\w*|unmöglich)\b"
                r"|\bmeine? \w+ ist (?:\w+ )?(?:gestorben|verstorben)\b",
                re.I,
            ),
            "sorrow",
        ),
    ),
    "fr": (
        (re.compile(rf"\b(?:parler|discuter|contacter|écrire|passez)\b.*\b(?:{_FR_PEOPLE})\b", re.I), "person"),
        (_whole(r"(?:bonjour|bonsoir|salut|coucou)(?: à tous)?"), "hello"),
        (_whole(r"merci(?: beaucoup| bien| à vous)?"), "thanks"),
        (_whole(r"au revoir|à bientôt|bonne (?:journée|soirée)"), "bye"),
        (_whole(r"(?:oui|d['\u2019]accord|bien sûr|volontiers)(?:,? (?:merci|s['\u2019]il vous plaît))?"), "yes"),
        (_whole(r"(?:non|pas maintenant)(?:,? merci)?"), "no"),
        (_whole(r"laissez? tomber|annulez?|annuler|oubliez?(?: ça)?"), "cancel"),
        (
            re.compile(
                r"\bje suis (?:\w+ )?(?:déçue?|furieu\w+|triste|désespérée?|en colère)\b"
                r"|\b(?:mon|ma) \w+ (?:est|vient de) (?:\w+ )?(?:décédée?|morte?|mourir)\b"
                r"|\bc[\'\u2019]est (?:inadmissible|scandaleux)\b",
                re.I,
            ),
            "sorrow",
        ),
    ),
    "es": (
        (re.compile(rf"\b(?:hablar|conversar|contactar|escribir)\b.*\b(?:{_ES_PEOPLE})\b", re.I), "person"),
        (_whole(r"hola|buenos días|buenas(?: tardes| noches)?"), "hello"),
        (_whole(r"(?:muchas |mil )?gracias"), "thanks"),
        (_whole(r"adiós|hasta (?:luego|pronto)|chao"), "bye"),
        (_whole(r"(?:sí|claro|vale|de acuerdo)(?:,? (?:por favor|gracias))?"), "yes"),
        (_whole(r"(?:no|ahora no),? gracias"), "no"),
        (_whole(r"olvíd[ae]lo|déj[ae]lo|cancelar"), "cancel"),
        (
            re.compile(
                r"\bestoy (?:\w+ )?(?:decepcionad[oa]|furios[oa]|triste|enfadad[oa]|desesperad[oa])\b"
                r"|\bmi \w+ (?:ha muerto|murió|falleció|ha fallecido)\b"
                r"|\bes (?:una vergüenza|inaceptable)\b",
                re.I,
            ),
            "sorrow",
        ),
    ),
    "nl": (
        (
            re.compile(rf"\b(?:{_NL_PEOPLE})\b.*\b(?:{_NL_TALK})\b|\b(?:{_NL_TALK})\b.*\b(?:{_NL_PEOPLE})\b", re.I),
            "person",
        ),
        (
            _whole(r"(?:hallo|hoi|dag|goe(?:de|ie)(?:n?avond|morgen|middag|n?dag))(?: allemaal)?"),
            "hello",
        ),
        (_whole(r"(?:heel erg |hartelijk |heel )?(?:bedankt|dank (?:je|u)(?: wel)?|dankjewel|dankuwel)"), "thanks"),
        (_whole(r"tot ziens|doei|tot (?:later|straks)|(?:een )?(?:prettige|fijne) (?:dag|avond)(?: nog)?"), "bye"),
        (_whole(r"(?:ja|graag|prima|oké|klopt|natuurlijk)(?:,? (?:graag|alstublieft|alsjeblieft))?"), "yes"),
        (_whole(r"(?:nee|niet nu)(?:,? (?:bedankt|dank (?:je|u)(?: wel)?))?"), "no"),
        (_whole(r"laat (?:maar|het maar zitten)|vergeet het(?: maar)?|annuleren|toch niet"), "cancel"),
        (
            re.compile(
                r"\bik ben (?:\w+ )?(?:teleurgesteld|boos|woedend|verdrietig|wanhopig)\b"
                r"|\bmijn \w+ is (?:\w+ )?(?:overleden|gestorven)\b"
                r"|\b(?:belachelijk|schandalig)\b",
                re.I,
            ),
            "sorrow",
        ),
    ),
    "ar": (
        (re.compile(rf"\b(?:{_AR_TALK})\b.*\b(?:{_AR_PEOPLE})\b"), "person"),
        (_whole(r"مرحب.{1,2}|أهل.{1,2}(?: وسهل.{1,2})?|السلام عليكم|صباح الخير|مساء الخير"), "hello"),
        (_whole(r"شكر.{1,2}(?: جزيل.{1,2}| لك)?"), "thanks"),
        (_whole(r"مع السلامة|إلى اللقاء|وداع.{1,2}"), "bye"),
        (_whole(r"(?:نعم|أجل|حسن.{1,2}|بالتأكيد|موافق)(?:،? (?:من فضلك|شكر.{1,2}))?"), "yes"),
        (_whole(r"لا(?:،? شكر.{1,2})|ليس الآن"), "no"),
        (_whole(r"إلغاء|لا يهم|انس الأمر|اترك ذلك"), "cancel"),
    ),
}
# How a visitor asks why something was declined; looked for only where something was.
_WHY = {
    "de": r"^\W*(?:(?:und|aber)\W+)?(?:warum|wieso|weshalb)(?: (?:denn )?nicht| denn)?\W*$"
    r"|\b(?:warum|wieso|weshalb|grund)\b.*\b(?:abgelehnt|verweigert|nicht (?:\w+ )?(?:genehmigt|geändert|gemacht))\b",
    "fr": r"^\W*(?:(?:et|mais)\W+)?pourquoi(?: pas)?\W*$"
    r"|\b(?:pourquoi|raison)\b.*\b(?:refus\w+|rejet\w+|pas (?:été )?(?:accept\w+|approuv\w+|modifi\w+))",
    "es": r"^\W*(?:(?:y|pero)\W+)?por ?qué(?: no)?\W*$"
    r"|\b(?:por ?qué|razón|motivo)\b.*\b(?:rechaz\w+|deneg\w+|no (?:se (?:ha )?)?(?:aprob\w+|acept\w+|cambi\w+))",
    "nl": r"^\W*(?:(?:en|maar)\W+)?waarom(?: niet| dan)?\W*$"
    r"|\b(?:waarom|reden)\b.*\b(?:afgewezen|geweigerd|niet (?:\w+ )?(?:goedgekeurd|gewijzigd|gedaan))\b",
    "ar": r"^\W*(?:لكن\W+|و)?لماذا(?: لا)?\W*$|(?:لماذا|سبب).*رفض",
}
_ASKS_WHY = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _WHY.values())
_ENGLISH = {
    "person": "Talk to a person",
    "hello": "Hello",
    "thanks": "Thank you",
    "bye": "Goodbye",
    "yes": "Yes",
    "no": "No",
    "cancel": "Never mind",
    "sorrow": "I am upset",
}
# A short sentence may stand in a document too: it is ours at the beginning only.
_SHORTEST = 16


@functools.lru_cache(maxsize=1024)
def to_english(text: str) -> str:
    """Map small talk and a wish for a person to their English counterparts; return anything else as it is."""
    if len(text) > _SHORT:
        return text
    says = (meant for language in LANGUAGES for pattern, meant in _SAYS[language] if pattern.search(text))
    meant = next(says, None)
    return text if meant is None else _ENGLISH[meant]


def translate(text: str, language: str) -> str:
    """Translate our own sentences in `text`; the rest, and all of it for an unknown language, stays as it is."""
    for ours, theirs in _sentences(language).items():
        text = _replace(text, ours, theirs)
    return text


@functools.lru_cache(maxsize=1024)
def translate_back(text: str) -> str:
    """Translate the bot's sentences back to English, from any language."""
    for language in LANGUAGES:
        for ours, theirs in _sentences(language).items():
            text = _replace(text, theirs, ours)
    return text


def _replace(text: str, one: str, other: str) -> str:
    if len(one) < _SHORTEST:
        return other + text.removeprefix(one) if text.startswith(one) else text
    return text.replace(one, other)


@functools.cache
def _sentences(language: str) -> Mapping[str, str]:
    """Longest first, so that no sentence is taken for a part of another."""
    if language not in LANGUAGES:
        return {}
    sentences: dict[str, str] = yaml.safe_load((_FOLDER / f"{language}.yaml").read_text(encoding="utf-8"))
    return dict(sorted(sentences.items(), key=lambda pair: -len(pair[0])))


def briefing_language(briefing: Briefing) -> str:
    mine = (message.text for message in reversed(briefing.history) if message.sender == "visitor")
    return detect_language((briefing.text, *mine))


def briefing_in_english(briefing: Briefing, language: str) -> Briefing:
    """The briefing with small talk and our own sentences in English.

    The company's greeting is used only for visitors who speak its language.
    """
    history = tuple(map(_message_in_english, briefing.history))
    text = to_english(briefing.text)
    if briefing.declined and len(text) <= _SHORT and any(pattern.search(text) for pattern in _ASKS_WHY):
        text = "Why was it declined?"
    greeting = briefing.greeting if detect_language([briefing.greeting]) == language else ""
    if (text, history, greeting) == (briefing.text, briefing.history, briefing.greeting):
        return briefing
    return replace(briefing, text=text, history=history, greeting=greeting)


def _message_in_english(utterance: HistoryMessage) -> HistoryMessage:
    match utterance.sender:
        case "visitor":
            text = to_english(utterance.text)
        case "bot":
            text = translate_back(utterance.text)
        case _:
            return utterance
    return utterance if text == utterance.text else replace(utterance, text=text)


def translate_move(move: Move, language: str) -> Move:
    """Translate what the move says into the visitor's language."""
    if language == ENGLISH or not isinstance(move, Say):
        return move
    output = move.output
    if isinstance(output, AgentResponse):
        return Say(_translate_response(output, language))
    if isinstance(output, RouteDecision) and output.response is not None:
        return Say(output.model_copy(update={"response": _translate_response(output.response, language)}))
    return move


def _translate_response(response: AgentResponse, language: str) -> AgentResponse:
    suggestions = [translate(suggestion, language) for suggestion in response.suggestions]
    ours = f"{phrases.QUOTED} {response.message}" if response.citations else response.message
    return response.model_copy(update={"message": translate(ours, language), "suggestions": suggestions})
