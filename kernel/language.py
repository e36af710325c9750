"""The languages of the product's texts, and how a text is written in the language of its reader.

Texts are written in English where they are used and marked with `gettext` or one of its relatives; the translations are
in `locale/`. A web request is answered in the language of its member, else of its browser. Everything else that people
read (a message in a conversation, an e-mail) is written `with in_language(...)`. Rules import the functions from here,
because they import nothing from Django.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import AbstractContextManager

from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext, ngettext_lazy, pgettext, pgettext_lazy

__all__ = [
    "DEFAULT_LANGUAGE",
    "LANGUAGES",
    "MEMBER_LANGUAGES",
    "choose_language",
    "gettext",
    "gettext_lazy",
    "in_english",
    "in_language",
    "ngettext",
    "ngettext_lazy",
    "pgettext",
    "pgettext_lazy",
]

DEFAULT_LANGUAGE = "en"
# By their own names. Visitors and the widget have all of them.
LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "nl": "Nederlands",
    "ar": "العربية",
}
# Those in which the console, the administration and e-mails to members are complete.
MEMBER_LANGUAGES = {code: name for code, name in LANGUAGES.items() if code != "ar"}


def choose_language(*tags: str, known: Container[str] = LANGUAGES) -> str:
    """The first of the tags whose language is `known`, such as `de` for `de-AT`; English if none of them is."""
    codes = (tag.replace("_", "-").split("-")[0].lower() for tag in tags)
    return next((code for code in codes if code in known), DEFAULT_LANGUAGE)


def in_language(*tags: str) -> AbstractContextManager[None]:
    """Write texts in the first of these languages that we have, English if there is none.

    A visitor's language comes before those of the deployment: `in_language(language_of(session),
    *deployment.languages)`; a member's is `in_language(user.language)`.
    """
    return translation.override(choose_language(*tags))


def in_english(text: str | Promise) -> str:
    """The English text: what is stored with a card, signed or told to a model is in one language."""
    with translation.override(DEFAULT_LANGUAGE):
        return str(text)
