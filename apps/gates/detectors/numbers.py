"""Validate check digits of cards, accounts and national numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

_SSN_NEVER_GIVEN = frozenset({"078051120", "219099999"})
_VERHOEFF_TURN = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
# Of the IBAN registry (ISO 13616): which countries' IBANs have how many letters and digits.
_IBAN_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI FK FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "LY PT ST",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}
IBAN_LENGTHS = {code: length for length, codes in _IBAN_COUNTRIES.items() for code in codes.split()}


def is_card(digits: str) -> bool:
    """13 to 19 digits with a right Luhn sum, begun as one of the networks begins."""
    return 13 <= len(digits) <= 19 and digits[0] in "23456" and len(set(digits)) > 1 and luhn(digits)


def luhn(digits: str) -> bool:
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(int(digit) for digit in digits[::-2]) + sum(n - 9 * (n > 9) for n in doubled)) % 10 == 0


_IBAN_FIGURES = {char: str(value) for value, char in enumerate("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")}


def iban_figures(text: str) -> tuple[str, list[int]]:
    """The letters and figures of `text` as the figures that are divided by 97 (ISO 13616), and for each of them, and
    for the end, where its own begin."""
    figures = [_IBAN_FIGURES[char] for char in text.upper()]
    return "".join(figures), [0, *accumulate(map(len, figures))]


def is_us_ssn(digits: str) -> bool:
    """Nine digits that the Social Security Administration could have given out."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    impossible = area in {"000", "666"} or area >= "900" or group == "00" or serial == "0000"
    return len(digits) == 9 and not impossible and digits not in _SSN_NEVER_GIVEN


def is_uk_nhs(digits: str) -> bool:
    check = (11 - _weighted(digits[:9], range(10, 1, -1)) % 11) % 11
    return len(digits) == 10 and check == int(digits[9])


def is_dutch_bsn(digits: str) -> bool:
    return len(digits) == 9 and _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and int(digits) > 0


def is_polish_pesel(digits: str) -> bool:
    return len(digits) == 11 and _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def is_german_tax_id(digits: str) -> bool:
    product = 10
    for digit in digits[:10]:
        product = (((int(digit) + product) % 10 or 10) * 2) % 11
    return len(digits) == 11 and digits[0] != "0" and (11 - product) % 10 == int(digits[10])


def is_french_nir(digits: str) -> bool:
    return len(digits) == 15 and digits[0] in "12" and 97 - int(digits[:13]) % 97 == int(digits[13:])


def is_brazilian_cpf(digits: str) -> bool:
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    first = _weighted(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = _weighted(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def is_spanish_id(text: str) -> bool:
    """DNI and NIE: eight digits, the first perhaps X, Y or Z, and the letter that follows from them."""
    number = {"X": "0", "Y": "1", "Z": "2"}.get(text[0], text[0]) + text[1:8]
    return len(text) == 9 and number.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[8]


def is_indian_aadhaar(digits: str) -> bool:
    """Twelve digits with a right Verhoeff sum."""
    return len(digits) == 12 and digits[0] not in "01" and _verhoeff(digits) == 0


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _verhoeff(digits: str) -> int:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        total = _dihedral(total, _turned(int(digit), place % 8))
    return total


def _turned(digit: int, times: int) -> int:
    for _ in range(times):
        digit = _VERHOEFF_TURN[digit]
    return digit


def _dihedral(a: int, b: int) -> int:
    if a < 5:
        return (a + b) % 5 if b < 5 else (a + b - 5) % 5 + 5
    return (a - 5 - b) % 5 + 5 if b < 5 else (a - b) % 5
