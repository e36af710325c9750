"""Who somebody is: found by check digits and by the words around, and nothing else taken for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apps.gates.detectors import name_scores, names, numbers, pii, tokens
from apps.gates.detectors.findings import Span, redact
from apps.gates.detectors.lexicon import lists_of, plain
from apps.gates.detectors.pii import detect_pii
from tests.gates.lines import lines_run
from tests.gates.test_phrases import turning_back

FOUND = [
    ("write to jo.doe+x@mail.example.co.uk now", "jo.doe+x@mail.example.co.uk", "EMAIL"),
    ("jo (at) example (dot) org", "jo (at) example (dot) org", "EMAIL"),
    ("müller@straße.example", "müller@straße.example", "EMAIL"),
    ("card 4111 1111 1111 1111.", "4111 1111 1111 1111", "CREDIT_CARD"),
    ("4111-1111-1111-1111", "4111-1111-1111-1111", "CREDIT_CARD"),
    ("cc:378282246310005", "378282246310005", "CREDIT_CARD"),
    ("5555555555554444 is it", "5555555555554444", "CREDIT_CARD"),
    ("to DE89 3704 0044 0532 0130 00 please", "DE89 3704 0044 0532 0130 00", "IBAN"),
    ("gb82west12345698765432", "gb82west12345698765432", "IBAN"),
    ("NO93 8601 1117 947, LC55 HEMM 0001 0001 0012 0012 0002 3015", "NO93 8601 1117 947", "IBAN"),
    ("NO93 8601 1117 947 LC55HEMM000100010012001200023015", "LC55HEMM000100010012001200023015", "IBAN"),
    ("RU03-0445-2522-5408-1781-0538-0913-1041-9 9", "RU03-0445-2522-5408-1781-0538-0913-1041-9", "IBAN"),
    ("AT12 DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00", "IBAN"),
    ("DE89370400440532013000 212-555-0187", "212-555-0187", "PHONE"),
    ("my ssn is 536-22-1234", "536-22-1234", "SSN"),
    ("social security number: 536221234", "536221234", "SSN"),
    ("call +49 30 901820", "+49 30 901820", "PHONE"),
    ("(212) 555-0187", "(212) 555-0187", "PHONE"),
    ("212-555-0187 x 12", "212-555-0187 x 12", "PHONE"),
    ("phone:2125550187", "2125550187", "PHONE"),
    ("2125550187 office, 2125550188 fax", "2125550187", "PHONE"),
    ("Denver, CO 80014 212-555-0187", "212-555-0187", "PHONE"),
    ("of my account: 212.555.0187", "212.555.0187", "PHONE"),
    ("please reach her on 2125550187", "2125550187", "PHONE"),
    ("phone no.2125550187", "2125550187", "PHONE"),
    ("2125550187 is my number", "2125550187", "PHONE"),
    ("they are not answering at 2125550187", "2125550187", "PHONE"),
    ("+1-384-428-4532 mobile", "+1-384-428-4532", "PHONE"),
    ("from 192.168.10.44 at", "192.168.10.44", "IP_ADDRESS"),
    ("at 2001:db8::8a2e:370:7334 today", "2001:db8::8a2e:370:7334", "IP_ADDRESS"),
    ("DNI 12345678Z", "12345678Z", "NATIONAL_ID"),
    ("nino QQ 12 34 56 C".replace("QQ", "AB"), "AB 12 34 56 C", "NATIONAL_ID"),
    ("my bsn 111222333", "111222333", "NATIONAL_ID"),
    ("PESEL is 44051401359", "44051401359", "NATIONAL_ID"),
    ("CPF 529.982.247-25", "529.982.247-25", "NATIONAL_ID"),
    ("NHS number 943 476 5919", "943 476 5919", "NATIONAL_ID"),
    ("aadhaar 2341 2341 2346", "2341 2341 2346", "NATIONAL_ID"),
    ("steuer id 86095742719", "86095742719", "NATIONAL_ID"),
    ("my name is Ada Lovelace and", "Ada Lovelace", "PERSON"),
    ("Please ask Mr. Jean-Luc O'Neil.", "Jean-Luc O'Neil", "PERSON"),
    ("Dear Ludwig van Beethoven,", "Ludwig van Beethoven", "PERSON"),
    ("Kind regards,\nGrace B. Hopper", "Grace B. Hopper", "PERSON"),
    ("I spoke to Anna about it", "Anna", "PERSON"),
    ("Please send it to Jürgen Müller in Berlin", "Jürgen Müller", "PERSON"),
    ("the account of Björk Guðmundsdóttir, please", "Björk Guðmundsdóttir", "PERSON"),
    ("I spoke to Pieter van Dijk about it", "Pieter van Dijk", "PERSON"),
    ("Yusuf Rossi\n12 Elm Street\nDenver", "Yusuf Rossi", "PERSON"),
    ("The second driver is Mary-Ann O'Neil.", "Mary-Ann O'Neil", "PERSON"),
    ("On my list are Oddny, Wijtze, Khasbulat and Ruby.", "Khasbulat", "PERSON"),
    ("Nobody told Ruben Ekmečić.", "Ruben Ekmečić", "PERSON"),
    ("Aunt Naurbi is here", "Naurbi", "PERSON"),
    ("Yes, Benedikta, I know", "Benedikta", "PERSON"),
    ("1. Ada Lovelace", "Ada Lovelace", "PERSON"),
    ("Passengers: Mei Patel and Ivan Smith.", "Ivan Smith", "PERSON"),
]
NOT_FOUND = [
    "4111 1111 1111 1112",
    "My order #W2378156 and tracking 1Z999AA10123456784",
    "reservation EHGLP3, item 6086499569, order 4082615",
    "It cost 1,234,567.89 dollars on 2024-05-16 10:30:00",
    "version 10.0.19045.1 and v1.2.3.4",
    "Dear customer, I am calling about the blue lamp.",
    "Hi, my name is wrong on the label",
    "I am unable to log in. Thanks, Team",
    "000-12-3456 and 666-12-3456 and 900-12-3456",
    "999.999.999.999 and 256.1.1.1",
    "DE88 3704 0044 0532 0130 02",
    "ZZ22 3704 0044 0532 0130 00 of no country",
    "DE51 3704 0044 0532 0130 0 is too short",
    "DE8937040044053201300065 is too long",
    "a@b and @home and me@ and 5@7",
    "the ratio is 3:2:1 at 10:20:30",
    "From Paris to Houston with United on Monday in May",
    "I bought a Blue Desk Lamp and a Garden Hose at Amazon.",
    "Send it to 12 Jackson Street, Austin, Texas.",
    "Ship it to 14 Rue Jean Moulin.\nOr to 7 Rua Pedro Nunes.",
    "They moved from Torres de Medina to Castel San Pietro.",
    "Jacob Baker and Sons, Walter Foods and Golden Jack announced a merger.",
    "Our branches are in Martinsberg, Velika Ana and Karlovice.",
    "The University of Lorenz and the Treaty of Victor",
    "In Florence and From Charlotte to Savannah",
    "2125550187 items and order 2125550187",
    "change it to item number 9844888101",
    "Don't worry. Will you mark it as paid? Hope so.",
    "The IBAN, the CVV and the PIN are wrong",
    "See Terms and Conditions or the Help Center.",
    "",
]


@pytest.mark.parametrize(("text", "words", "kind"), FOUND)
def test_person_is_found_where_it_stands(text: str, words: str, kind: str) -> None:
    assert (words, kind) in [(text[span.start : span.end], span.kind) for span in detect_pii(text).spans]


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert detect_pii(text).spans == ()


@pytest.mark.parametrize(("text", "words", "kind"), FOUND)
def test_redacted_text_no_longer_holds_it(text: str, words: str, kind: str) -> None:
    redacted = detect_pii(text).redacted
    assert redacted is not None
    assert words not in redacted
    assert f"[{kind}]" in redacted


@given(
    iban=st.sampled_from(["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "NO93-8601-1117-947"]),
    after=st.from_regex(r"\A(?: [A-Za-z0-9]{1,4}){1,6}\Z"),
)
@example(iban="DE89 3704 0044 0532 0130 00", after=" on 75")
def test_iban_ends_where_it_ends_whatever_follows(iban: str, after: str) -> None:
    assert Span(0, len(iban), "IBAN") in detect_pii(iban + after, kinds=["IBAN"]).spans


def test_name_with_its_small_words_is_one_finding() -> None:
    assert detect_pii("I met Ludwig van Bergen there").redacted == "I met [PERSON] there"


def test_text_without_capitals_costs_no_name() -> None:
    assert detect_pii("john told mary that bob had paid").spans == ()


def test_word_in_no_list_is_a_stranger() -> None:
    assert lists_of("qwxzzy") == 0


def test_accents_do_not_hide_a_name_from_the_lists() -> None:
    assert lists_of(plain("Žofie")) == lists_of("zofie") != 0


def test_kinds_that_are_not_asked_for_stay() -> None:
    found = detect_pii("jo@example.org pays with 4111111111111111", kinds=["CREDIT_CARD"])
    assert found.redacted == "jo@example.org pays with [CREDIT_CARD]"


def test_redacting_keeps_every_other_character() -> None:
    text = "a\u200b jo@example.org \U0001f600 4111111111111111 z"
    assert detect_pii(text).redacted == "a\u200b [EMAIL] \U0001f600 [CREDIT_CARD] z"


@pytest.mark.parametrize(
    ("check", "right"),
    [
        (numbers.is_card, "4111111111111111"),
        (lambda account: bool(detect_pii(account, kinds=["IBAN"]).spans), "DE89370400440532013000"),
        (numbers.is_uk_nhs, "9434765919"),
        (numbers.is_dutch_bsn, "111222333"),
        (numbers.is_polish_pesel, "44051401359"),
        (numbers.is_german_tax_id, "86095742719"),
        (numbers.is_french_nir, "255081416802538"),
        (numbers.is_brazilian_cpf, "52998224725"),
        (numbers.is_indian_aadhaar, "234123412346"),
        (numbers.is_spanish_id, "12345678Z"),
    ],
)
def test_any_one_wrong_digit_is_noticed(check: Callable[[str], bool], right: str) -> None:
    wrong = [right[:-2] + digit + right[-1] for digit in "0123456789" if digit != right[-2]]
    assert check(right)
    assert not any(check(number) for number in wrong)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_and_rest_of_it_kept(text: str) -> None:
    found = detect_pii(text)
    assert all(0 <= span.start < span.end <= len(text) for span in found.spans)
    assert (found.redacted or text) == redact(text, found.spans)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789 +-().x@:#DEabMr.", max_size=120))
def test_figures_in_any_order_are_read(text: str) -> None:
    assert 0 <= detect_pii(text).score <= 1


HOSTILE = [
    "1",
    "1 ",
    "1-",
    "(",
    "+",
    "a@",
    "a.",
    "@",
    "a@a.",
    "DE89",
    "DE89 ",
    "Mr ",
    "my name is ",
    "my name is A ",
    "A-",
]
HOSTILE += [
    "Dear Ann ",
    "1.",
    "1.1.1.1 ",
    ":",
    "a:",
    "4111 1111 1111 1111 ",
    "phone:1",
    "\u00a0",
    "x",
    "X1234567L",
    "at )",
    "Ab ",
    "Smith John ",
    "John, ",
    "San Rue 1 ",
    "Ab-",
    "van ",
    "A'b",
    "Ab, ",
    "Ab and ",
    "1. Ab\n",
    "12345 212-555-0187 ",
    "2125550187 is my ",
]


def detected_anew(text: str) -> None:
    """Nothing is known from another text."""
    tokens._known.cache_clear()
    name_scores._weight.cache_clear()
    detect_pii(text)


BEGINNINGS = [
    (pii._IP4, pii._FIGURE),
    (pii._SPANISH, pii._SPANISH_BEGINS),
    (pii._UK_NINO, pii._UK_NINO_BEGINS),
    (pii._DIGITS, pii._DIGITS_BEGIN),
]
_LIKE_NUMBERS = st.lists(
    st.sampled_from(
        ["1", "22", "1234567", "(212) ", "+", "x", "X", "AB", "DE12", "-", ".", " ", "Z", "é", "٣", "555-0187"]
    )
)


@given(_LIKE_NUMBERS.map("".join))
@example("x1234567Z 12345678Z de12 3456 7890 1234 10.0.0.1 AB 12 34 56 C +1 (212) 555-0187")
def test_pattern_tried_where_it_may_begin_finds_what_it_finds_everywhere(text: str) -> None:
    for pattern, begins in BEGINNINGS:
        everywhere = [match.span() for match in pattern.finditer(text)]
        assert [match.span() for match in pii._matches(pattern, begins, text)] == everywhere


@pytest.mark.parametrize("piece", HOSTILE)
def test_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    one, two = (lines_run(partial(detected_anew, piece * (size // len(piece)))) for size in (1024, 2048))
    assert two <= 2.5 * one + 2_000


PATTERNS = [
    value for module in (pii, names, tokens) for value in vars(module).values() if isinstance(value, re.Pattern)
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern[:30])
def test_pattern_never_turns_back(pattern: re.Pattern[str]) -> None:
    assert turning_back(pattern) == []
