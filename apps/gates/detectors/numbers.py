"""Validate cards, accounts and national numbers by their check digits, with python-stdnum. Pure.

Every number comes without separators. What stdnum cannot do stays here: it validates a number that was cut out, and
a detector has to know where in a running text an IBAN ends.
"""

from __future__ import annotations

from stdnum import iban, luhn
from stdnum.br import cpf
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar
from stdnum.nl import bsn
from stdnum.pl import pesel
from stdnum.us import ssn

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
    return 13 <= len(digits) <= 19 and digits[0] in "23456" and len(set(digits)) > 1 and bool(luhn.is_valid(digits))


def is_iban(text: str) -> bool:
    """By its check digits alone: the rules of single countries' banks are not looked at, so that none is missed."""
    return bool(iban.is_valid(text, check_country=False))


def is_international_phone(digits: str) -> bool:
    """A country's code and as many digits as its numbers may have. Numbers that are written as people of one
    country write them are told by their groups and by words (`pii`): libphonenumber would have to know the country."""
    import phonenumbers

    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_possible_number(number))


is_us_ssn = ssn.is_valid
is_uk_nhs = nhs.is_valid
is_dutch_bsn = bsn.is_valid
is_polish_pesel = pesel.is_valid
is_german_tax_id = idnr.is_valid
is_french_nir = nir.is_valid
is_brazilian_cpf = cpf.is_valid
is_indian_aadhaar = aadhaar.is_valid


def is_spanish_id(text: str) -> bool:
    """DNI and NIE: eight digits, the first perhaps X, Y or Z, and the letter that follows from them."""
    return bool(dni.is_valid(text) or nie.is_valid(text))
