"""Does `builtin:grounded` read a value only when it has one reading?"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm.briefing import ToolBrief
from llm.offline import arguments, values
from llm.offline.words import content, near, sentences, stem
from tests.factories.llm import FILE_CLAIM, REFUND, UPDATE_ADDRESS

TODAY = "2025-05-03"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2025-04-30", "2025-04-30"),
        ("10 December 1815", "1815-12-10"),
        ("the 3rd of May 2025", "2025-05-03"),
        ("Dec 10, 1815", "1815-12-10"),
        ("10.12.1815", "1815-12-10"),
        ("25/12/2024", "2024-12-25"),
        ("12/25/2024", "2024-12-25"),
        ("5/5/2025", "2025-05-05"),
        ("it was yesterday", "2025-05-02"),
        ("today", "2025-05-03"),
        ("3/4/2025", None),
        ("30/02/2025", None),
        ("2025-13-01", None),
        ("2025-04-30 or 2025-05-01", None),
        ("in May", None),
        ("CLM-2025-01-02", None),
        ("", None),
    ],
)
def test_date_is_read_when_it_has_one_reading(text: str, expected: str | None) -> None:
    assert values.find_date(text, TODAY) == expected


def test_date_relative_without_a_today_is_nothing() -> None:
    assert values.find_date("yesterday") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("35", 35),
        ("35.50", 35.5),
        ("35,50 €", 35.5),
        ("1,200.50 dollars", 1200.5),
        ("$1,200", 1200),
        ("€ 12", 12),
        ("-5", -5),
        ("20% of 50", 50),
        ("1.200", None),
        ("1.2.3", None),
        ("35 or 40", None),
        ("H-1001", None),
        ("on 2025-04-30", None),
        ("none", None),
    ],
)
def test_number_is_read_when_it_has_one_reading(text: str, expected: float | None) -> None:
    assert values.find_number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("POL-1001", "POL-1001"),
        ("it's pol-1001.", "POL-1001"),
        ("policy POL 1001", "POL-1001"),
        ("POL-1001 and again POL-1001", "POL-1001"),
        ("POL-1001 or POL-1002", None),
        ("XPOL-10011", None),
        ("POL-100", None),
    ],
)
def test_id_is_read_when_there_is_one(text: str, expected: str | None) -> None:
    assert values.find_pattern(text, "^POL-\\d{4}$") == expected


@pytest.mark.parametrize("pattern", ["^.+$", ".*", "[a-z ]+", "("])
def test_id_pattern_that_any_text_fits_is_no_id(pattern: str) -> None:
    assert not values.is_specific(pattern)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it was damaged", "damaged"),
        ("the wrong item came", "wrong_item"),
        ("WRONG ITEM", "wrong_item"),
        ("late and damaged", None),
        ("no idea", None),
    ],
)
def test_choice_is_read_when_one_is_named(text: str, expected: str | None) -> None:
    assert values.find_choice(text, ["damaged", "late", "wrong_item"]) == expected


def test_choice_inside_a_longer_one_yields() -> None:
    assert values.find_choice("express delivery", ["delivery", "express delivery"]) == "express delivery"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My new address is 12 Elm Street, 90210 Springfield.", "12 Elm Street, 90210 Springfield"),
        ("change it to 5 Rue de l'Eglise, 75001 Paris please", "5 Rue de l'Eglise, 75001 Paris"),
        ("move my policy to Flat 4, 12 Elm Street, Bristol BS1 4DJ", "Flat 4, 12 Elm Street, Bristol BS1 4DJ"),
        ("I moved to Springfield", None),
        ("send it to me", None),
        ("the address is the same", None),
    ],
)
def test_address_in_passing_needs_a_house_number(text: str, expected: str | None) -> None:
    assert values.find_address(text) == expected


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("12 Elm Street, 90210 Springfield", {"street": "12 Elm Street", "postcode": "90210", "city": "Springfield"}),
        (
            "12 Elm Street, Springfield, IL 62704",
            {"street": "12 Elm Street", "postcode": "62704", "city": "Springfield"},
        ),
        ("1 High St, London, SW1A 1AA", {"street": "1 High St", "postcode": "SW1A 1AA", "city": "London"}),
        ("12 Elm Street", {}),
    ],
)
def test_address_parts_are_the_ones_that_are_there(address: str, parts: dict[str, str]) -> None:
    assert values.address_parts(address) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("yes", True), ("no thanks", False), ("I do not want that", False), ("yes and no", None), ("maybe", None)],
)
def test_yes_or_no_is_read_when_it_is_one(text: str, expected: bool | None) -> None:
    assert values.find_bool(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("mail a.b+c@ex-ample.org!", "a.b+c@ex-ample.org"), ("a@b.de c@d.de", None), ("at home", None)],
)
def test_email_is_read_when_there_is_one(text: str, expected: str | None) -> None:
    assert values.find_email(text) == expected


def test_phone_number_is_not_a_date() -> None:
    assert values.find_phone("10.12.1815, call +49 (30) 123-4567") == "+49 (30) 123-4567"


@pytest.mark.parametrize(
    ("tool", "text", "asked", "args"),
    [
        (UPDATE_ADDRESS, "to 12 Elm Street, 90210 Springfield on POL-1001", None, {"policy", "address"}),
        (UPDATE_ADDRESS, "12 Elm Street, 90210 Springfield", None, set()),
        (UPDATE_ADDRESS, "12 Elm Street, 90210 Springfield", "address", {"address"}),
        (UPDATE_ADDRESS, "Elm 1", "address", set()),
        (UPDATE_ADDRESS, "What do you mean?", "address", set()),
        (REFUND, "35 for H-1001", None, {"order"}),
        (REFUND, "35 for H-1001", "amount", {"order", "amount"}),
        (REFUND, "0 euros", "amount", set()),
        (FILE_CLAIM, "because a pipe burst in the kitchen", None, {"description"}),
        (FILE_CLAIM, "short", "description", set()),
    ],
)
def test_arguments_are_taken_by_kind_or_when_asked(
    tool: ToolBrief, text: str, asked: str | None, args: set[str]
) -> None:
    assert set(arguments.collect(tool, text, asked=asked, today=TODAY)) == args


def test_postal_parts_come_from_one_answer() -> None:
    schema = {"type": "object", "properties": {part: {"type": "string"} for part in ("street", "zip_code", "city")}}
    tool = ToolBrief("move", "Move", schema)
    found = arguments.collect(tool, "12 Elm Street, 90210 Springfield", asked="street")
    assert found == {"street": "12 Elm Street", "zip_code": "90210", "city": "Springfield"}


@settings(deadline=None)
@given(st.text(max_size=200), st.sampled_from([None, "policy", "address"]))
def test_arguments_of_any_text_fit_their_schema(text: str, asked: str | None) -> None:
    found: dict[str, Any] = arguments.collect(UPDATE_ADDRESS, text, asked=asked)
    assert arguments.valid(UPDATE_ADDRESS, found) == found


@pytest.mark.parametrize(
    "forms",
    [
        ("covers", "covered", "covering", "coverage"),
        ("policy", "policies"),
        ("claim", "claims", "claimed"),
        ("cancel", "cancellation"),
    ],
)
def test_stem_of_forms_of_one_word_is_the_same(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize(("one", "other"), [("adress", "address"), ("polciy", "policy"), ("furnitrue", "furniture")])
def test_slip_of_the_finger_is_forgiven(one: str, other: str) -> None:
    assert near(one, other)


@pytest.mark.parametrize(("one", "other"), [("claim", "flaim"), ("cat", "car"), ("policy", "police force"), ("a", "")])
def test_another_word_is_not_a_slip(one: str, other: str) -> None:
    assert not near(one, other)


def test_content_leaves_out_what_means_nothing() -> None:
    assert content("Could you please tell me what the excess is?") == ["excess"]


@settings(deadline=None)
@given(st.text(max_size=400))
def test_sentences_are_spans_in_order_that_do_not_overlap(text: str) -> None:
    spans = sentences(text)
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_sentences_end_at_points_but_not_after_abbreviations() -> None:
    text = "Ask Dr. Smith, e.g. by phone. He knows. - Not this"
    assert [text[start:end] for start, end in sentences(text)][:2] == ["Ask Dr. Smith, e.g. by phone.", "He knows."]


def test_sentences_take_each_list_item_for_itself() -> None:
    text = "Covered:\n- fire\n- flood\n\nNot covered: war"
    assert [text[start:end] for start, end in sentences(text)] == ["Covered:", "- fire", "- flood", "Not covered: war"]
