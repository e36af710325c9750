"""Arguments, changes and facts: what a script may be given, what it may ask for, and what a person is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.skills import rules
from apps.skills.schemas import FactSpec, SetChange, ToolSpec
from tests.factories.skills import acting_tool

ACT = ToolSpec(
    **acting_tool(
        args={
            "type": "object",
            "properties": {
                "order": {"type": "string", "pattern": "^H-\\d{5}$"},
                "day": {"type": "string", "format": "date"},
            },
            "required": ["order"],
        },
        facts=[
            {"label": "Status", "book": "orders", "key": "{order}", "field": "status", "after": "paid {amount}"},
            {"label": "Total", "book": "orders", "key": "{order}", "field": "total"},
            {"label": "Note", "text": "for {order}"},
        ],
    ),
    skill="test-desk@0123456789abcdef",
)
ROWS = {"orders": [{"key": "H-90187", "subject": "C-1", "revision": 3, "data": {"status": "delivered", "total": 21.5}}]}


@pytest.mark.parametrize(
    "args", [{}, {"order": "H-1"}, {"order": 7}, {"order": "H-90187", "x": 1}, {"order": "H-90187", "day": "soon"}]
)
def test_arguments_that_do_not_fit_are_a_problem(args):
    assert rules.argument_problem(ACT, args)


def test_arguments_that_fit_are_no_problem():
    assert rules.argument_problem(ACT, {"order": "H-90187", "day": "2025-05-03"}) == ""


def changes(*items: object) -> bytes:
    return json.dumps(items).encode()


SET = {"book": "orders", "key": "H-90187", "revision": 3, "set": {"status": "paid"}}
NEW = {"book": "orders", "key": "H-1", "subject": "C-1", "create": {"status": "new"}}


def test_changes_in_order_are_read():
    assert rules.parse_changes(changes(SET), ACT, "C-1") == (
        SetChange(book="orders", key="H-90187", revision=3, set={"status": "paid"}),
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"null",
        b"[1]",
        b"[" * 5000,
        changes({**SET, "book": "policies"}),
        changes({**SET, "book": "../orders"}),
        changes({**SET, "revision": 0}),
        changes({**SET, "set": {}}),
        changes({**SET, "set": {"a b": 1}}),
        changes({**SET, "set": {"a": "x\0y"}}),
        changes({**SET, "set": {"a": {"b": ["\ud800"]}}}),
        changes({**SET, "tenant_id": "other"}),
        changes({**SET, "create": {"a": 1}}),
        changes({**NEW, "subject": "C-2"}),
        changes({**NEW, "subject": ""}),
        changes({**NEW, "key": ""}),
        changes(SET, SET),
        changes(*[{**NEW, "key": f"H-{n}"} for n in range(rules.MAX_CHANGES + 1)]),
        b"[" + b" " * rules.MAX_CHANGE_BYTES + b"]",
    ],
)
def test_changes_that_are_not_the_tools_to_make_are_refused(raw):
    with pytest.raises(ValueError):
        rules.parse_changes(raw, ACT, "C-1")


def test_changes_of_a_tool_that_writes_nothing_are_refused():
    with pytest.raises(ValueError, match="may not write"):
        rules.parse_changes(changes(SET), ACT.model_copy(update={"writes": []}), "C-1")


@given(st.binary(max_size=200))
def test_changes_from_any_bytes_are_read_or_refused(raw):
    try:
        rules.parse_changes(raw, ACT, "C-1")
    except ValueError:
        return
    assert json.loads(raw) is not None


def test_facts_show_before_and_after():
    facts = rules.card_facts(ACT, {"order": "H-90187", "amount": 5.0}, ROWS)
    assert facts == [
        {"label": "Status", "before": "delivered", "after": "paid 5.00"},
        {"label": "Total", "text": "21.50"},
        {"label": "Note", "text": "for H-90187"},
    ]


def test_stored_amount_is_shown_with_its_currency():
    fact = {"label": "Total", "book": "orders", "key": "{order}", "field": "total", "shown": "£{value}"}
    shown = rules.card_facts(ACT.model_copy(update={"facts": [FactSpec(**fact)]}), {"order": "H-90187"}, ROWS)
    assert shown == [{"label": "Total", "text": "£21.50"}]


def test_amount_that_is_not_on_record_has_no_currency():
    fact = FactSpec(label="Total", book="orders", key="{order}", field="total", shown="£{value}")
    assert (
        rules.card_facts(ACT.model_copy(update={"facts": [fact]}), {"order": "H-1"}, ROWS)[0]["text"] == "not on record"
    )


@pytest.mark.parametrize("shown", ["£", "{value}{value}", "{amount}"])
def test_fact_whose_value_would_not_be_shown_is_refused(shown):
    with pytest.raises(ValueError, match="once"):
        FactSpec(label="Total", book="orders", key="{order}", field="total", shown=shown)


def test_facts_about_an_unknown_row_say_so():
    assert rules.card_facts(ACT, {"order": "H-1"}, ROWS)[1] == {"label": "Total", "text": "not on record"}


@given(st.text(max_size=50))
def test_fill_puts_a_value_in_once_and_reads_no_template_in_it(value):
    assert rules.fill("{a}", {"a": value, "b": "secret"}) == " ".join(value.split())


def test_reference_names_the_content():
    assert rules.split_reference(rules.reference("desk", "0" * 64)) == ("desk", "0" * 16)


@pytest.mark.parametrize(
    ("args", "which"),
    [
        ({}, "order"),
        ({"order": "4111 1111"}, "order"),
        ({"order": "H-90187", "day": "soon"}, "day"),
        ({"order": "H-90187", "4111 1111": 1}, ""),
        ({"order": "H-90187"}, ""),
    ],
)
def test_argument_at_fault_is_named_as_its_author_called_it(args, which):
    assert rules.faulty_argument(ACT, args) == which


@pytest.mark.parametrize(("value", "read"), [(49.5, "49.50"), (250.004, "250.004"), (0.001, "0.001"), (5, "5")])
def test_fill_shows_a_number_as_it_is_bound(value, read):
    assert rules.fill("£{amount}", {"amount": value}) == f"£{read}"
