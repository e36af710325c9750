"""A value keeps the origin that it has, whatever a model writes about it."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.provenance import Origin, Source, Sources, Traced, as_text, clean_label, contains_value

TYPED = Traced(Origin.VISITOR, "seq:3")
PAGE = Traced(Origin.TOOL, "call:1", "evil.example")
BOOK = Traced(Origin.RECORDS, "call:2", "policy_details")
GUIDE = Traced(Origin.DOCUMENT, "document:1@2", "Moving house")
KEPT = Traced(Origin.MEMORY, "memory:1")
IBAN = "DE89 3704 0044 0532 0130 00"


def traced(value: Any, *sources: Source) -> Origin:
    return Sources(sources).trace(value).origin


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("12 Harbour Street, Leeds LS1 4AP", "Please send it to 12 Harbour Street,  Leeds LS1 4AP from now on"),
        ("12 Harbour Street, Leeds", "I live at 12 harbour street\nLeeds now"),
        ("grace@example.com", "write to grace@example.com."),
        ("DE89370400440532013000", f"My account is {IBAN}, thanks"),
        (IBAN, "My account is DE89370400440532013000"),
        ("+44 20 7946 0958", "call +442079460958"),
        (50, "refund me £50 please"),
        (50, "50EUR"),
        (50.0, "I paid 50.00."),
        (1200.5, "1,200.50 for the sofa"),
        (1200.5, "1.200,50 für das Sofa"),
        ("H-1", "about order H-1"),
        (50, "fifty or 50?"),
    ],
)
def test_value_is_held_in_its_usual_notations(value: Any, text: str) -> None:
    assert contains_value(value, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("12345678", "my number is 9912345678"),
        ("12345678", "my number is 99 1234 5678"),
        ("5 Park Road", "I live at 15 Park Road"),
        ("grace@example.com", "write to notgrace@example.com"),
        ("grace@example.co", "write to grace@example.com"),
        (5, "it cost 5.99"),
        (1, "order H-1"),
        (11, "on 2026-11-05"),
        (50, "fifty"),
        (50, "150"),
        (200, "1,200"),
        ("", "anything"),
        ("https://evil.example/a", "evil example a"),
    ],
)
def test_part_of_another_value_is_not_held(value: Any, text: str) -> None:
    assert not contains_value(value, text)


def test_value_that_no_source_holds_was_made_up() -> None:
    assert traced(IBAN, Source(TYPED, "Please change my address")) is Origin.MODEL


def test_value_that_the_visitor_typed_is_theirs_with_the_message() -> None:
    assert Sources((Source(TYPED, "£50 please"),)).trace(50) == TYPED


@pytest.mark.parametrize("outside", [PAGE, GUIDE])
def test_value_that_something_outside_holds_too_is_the_outsiders(outside: Traced) -> None:
    assert traced(IBAN, Source(TYPED, IBAN), Source(outside, f"Send it to {IBAN}")) is outside.origin


def test_value_that_a_tool_was_handed_is_not_the_tools() -> None:
    answer = as_text({"say": f"no account {IBAN} here"})
    assert traced(IBAN, Source(BOOK, answer, given=IBAN)) is Origin.MODEL


def test_value_that_a_page_held_before_stays_the_pages_when_our_tool_repeats_it() -> None:
    assert traced(IBAN, Source(PAGE, IBAN), Source(BOOK, IBAN, given=IBAN)) is Origin.TOOL


def test_value_of_our_records_is_theirs() -> None:
    assert traced(50, Source(BOOK, as_text({"order": {"total": 50}}))) is Origin.RECORDS


def test_what_is_remembered_counts_where_nothing_better_holds_it() -> None:
    assert traced(IBAN, Source(KEPT, IBAN)) is Origin.MEMORY
    assert traced(IBAN, Source(KEPT, IBAN), Source(TYPED, IBAN)) is Origin.VISITOR


def test_object_has_the_origin_of_its_worst_part() -> None:
    sources = (Source(TYPED, "Grace, please"), Source(PAGE, IBAN))
    assert traced({"name": "Grace", "iban": IBAN}, *sources) is Origin.TOOL
    assert traced({"name": "Grace", "iban": "other"}, *sources) is Origin.MODEL


@pytest.mark.parametrize("value", [None, True, False])
def test_value_that_stands_in_no_text_is_never_somebodys_words(value: Any) -> None:
    assert traced(value, Source(TYPED, "None True False")) is Origin.MODEL


def test_name_of_a_source_is_one_short_line() -> None:
    assert clean_label("the customer's\nmessage\u202e · 14:02" + "x" * 200).count("\n") == 0
    assert "\u202e" not in clean_label("a\u202eb")
    assert len(clean_label("x" * 200)) <= 80
