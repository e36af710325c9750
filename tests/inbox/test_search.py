"""What does the search of the inbox make of what is typed? Operands only, and names that are nearly right."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.inbox import search


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("pipe", "'pipe':*"),
        ('"burst pipe" leak', "'burst pipe' & 'leak':*"),
        ("pipe -burst", "'pipe':* & !'burst'"),
        ("-burst", ""),
        ("a", "'a'"),
        ("it's", "'it''s':*"),
        ("x\\' | y", "'x\\\\':* & 'y'"),
        (":* ! & %", ""),
    ],
)
def test_typed_words_become_operands(text: str, query: str) -> None:
    assert search.said(text) == query


@pytest.mark.parametrize(
    ("text", "name", "alike"),
    [
        ("marai", "Maria Ortega", True),
        ("jhon", "John", True),
        ("ortgea mari", "Maria Ortega", True),
        ("schwarzenegr", "Schwarzenegger", True),
        ("ana", "Eva", False),
        ("martin", "Maria", False),
        ("maria smith", "Maria Ortega", False),
        ("maria", "", False),
    ],
)
def test_names_are_alike_when_a_slip_of_the_finger_explains_it(text: str, name: str, alike: bool) -> None:
    assert search.is_alike(text, name) is alike


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_question_that_the_database_takes(database: None, text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_tsquery('simple', %s), %s::tsquery", [search.said(text), search.contact(text)])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0İ", max_codepoint=0x24F), max_size=30))
def test_pieces_of_a_name_are_the_databases(database: None, text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tsvector_to_array(sessions_grams(%s))", [text])
        (there,) = cursor.fetchone()
    assert sorted(there) == sorted({gram for word in search.names_in(text) for gram in search.grams(word)})
