"""Which words are a claim of identity, and which only look like one."""

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gates.claims import Claim, find_birth_date, find_claim, find_name

MARIA = Claim("Maria Ortega", date(1984, 3, 12))


@pytest.mark.parametrize(
    "written",
    [
        "1984-03-12",
        "1984/03/12",
        "1984.3.12",
        "12/03/1984",
        "12.03.1984",
        "12-3-1984",
        "12 / 03 / 1984",
        "12 March 1984",
        "12th March 1984",
        "12th of March, 1984",
        "12 mar 1984",
        "12-Mar-1984",
        "March 12, 1984",
        "March 12th 1984",
        "Mar. 12 1984",
    ],
)
def test_birth_date_in_any_spelling_is_found(written):
    assert find_birth_date(f"born {written}") == date(1984, 3, 12)


def test_birth_date_ambiguous_is_read_day_first():
    assert find_birth_date("born 03/12/1984") == date(1984, 12, 3)


def test_birth_date_impossible_day_first_is_read_month_first():
    assert find_birth_date("born 03/25/1984") == date(1984, 3, 25)


@pytest.mark.parametrize(
    "text", ["31/02/1984", "1984-13-45", "12/03/84", "12/03/1784", "0.12.03.1984.7", "CL-12-03-19845", "March 1984", ""]
)
def test_birth_date_that_is_none_is_not_found(text):
    assert find_birth_date(f"born {text}") is None


def test_birth_date_beside_another_date_is_the_one_at_the_word():
    text = "It burst on 3 May 2024 while I was away; I was born 12 March 1984"
    assert find_birth_date(text) == date(1984, 3, 12)


def test_birth_date_of_an_event_in_a_sentence_is_not_one():
    assert find_birth_date("The pipe burst on 3 May 2024 and the ceiling came down") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I am Maria Ortega", "Maria Ortega"),
        ("I'm Maria Ortega.", "Maria Ortega"),
        ("Hello, this is Maria Ortega and I need help", "Maria Ortega"),
        ("my name is maria ortega", "Maria Ortega"),
        ("My full name is Maria del Carmen Ortega", "Maria del Carmen Ortega"),
        ("name: Seán O\u2019Brien-Walsh", "Seán O'Brien-Walsh"),
        ("Maria Ortega", "Maria Ortega"),
        ("MARIA ORTEGA", "MARIA ORTEGA"),
        ("Jürgen van der Berg", "Jürgen van der Berg"),
    ],
)
def test_name_that_is_given_is_found(text, name):
    assert find_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "I am looking for my claim",
        "I am Maria",
        "It's maria, born 1984-03-12",
        "what is the status of my claim",
        "Does my home policy cover a burst pipe?",
        "thanks a lot",
        "Yes please",
        "Hello there",
        "",
        "HM-20418",
    ],
)
def test_name_that_is_none_is_not_found(text):
    assert find_name(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "I am Maria Ortega, born 1984-03-12",
        "My name is Maria Ortega and my date of birth is 12/03/1984",
        "Maria Ortega, born 12 March 1984",
        "Maria Ortega, 12 March 1984",
        "Maria Ortega 12.03.1984",
        "maria ortega, 12/03/1984",
        "hi i am maria ortega born 12/03/1984",
        "1984-03-12 Maria Ortega",
        "DOB 12/03/1984, Maria Ortega",
        "Maria Ortega (born March 12, 1984)",
        "Maria Ortega\n12 March 1984",
        "Name: Maria Ortega, date of birth: 12 March 1984",
        "it's Maria Ortega, DOB: 1984-03-12. What about my claim?",
        "Please look up claim CL-3071 for Maria Ortega 1984-03-12, thank you",
    ],
)
def test_claim_in_one_message_is_found(text):
    assert find_claim(text) == MARIA


def test_claim_with_name_before_and_date_now_is_found():
    assert find_claim("12/03/1984", ["What is my claim's status?", "Maria Ortega"]) == MARIA


def test_claim_with_date_before_and_name_now_is_found():
    assert find_claim("Maria Ortega", ["born 12 March 1984"]) == MARIA


def test_claim_uses_the_latest_earlier_name():
    assert find_claim("12/03/1984", ["I am Peter Lang", "I am Maria Ortega"]) == MARIA


def test_claim_wholly_in_earlier_messages_is_not_made_again():
    assert find_claim("When do you open?", ["I am Maria Ortega, born 1984-03-12"]) is None


def test_claim_with_name_only_is_none():
    assert find_claim("I am Maria Ortega") is None


@pytest.mark.parametrize("text", ["3 May 2024", "Peter Lang", "It happened on 3 May 2024", "Peter Lang, 3 May 2024"])
def test_claim_of_a_known_visitor_is_not_made_by_a_bare_answer(text):
    assert find_claim(text, ["I am Maria Ortega, born 1984-03-12"], known=True) is None


def test_claim_of_a_known_visitor_spelled_out_is_a_new_claim():
    claim = find_claim("I am Peter Lang, born 2 May 1970", [], known=True)
    assert claim == Claim("Peter Lang", date(1970, 5, 2))


def test_claim_as_values_is_plain_text():
    assert MARIA.as_values() == {"customer_name": "Maria Ortega", "customer_dob": "1984-03-12"}


def test_claim_holds_only_letters_whatever_is_written():
    claim = find_claim("I am Maria Ortega'; rm -rf / #, born 1984-03-12")
    assert claim == MARIA


@given(st.text(max_size=300), st.lists(st.text(max_size=100), max_size=3))
def test_claim_from_any_text_never_fails_and_never_carries_shell_characters(text, earlier):
    claim = find_claim(text, earlier)
    assert claim is None or not set(claim.name) & set('$`;|&<>"\\\n\0')


@given(
    st.dates(min_value=date(1900, 1, 1), max_value=date(2020, 1, 1)),
    st.sampled_from(["%Y-%m-%d", "%d/%m/%Y", "%d %B %Y", "%B %d, %Y"]),
)
def test_birth_date_written_in_any_known_way_is_read_back(when, how):
    assert find_birth_date(f"I was born {when.strftime(how)}") == when


@pytest.mark.parametrize(
    "text",
    [
        "a" * 4000,
        "a'" * 2000,
        "A-" * 2000,
        "12 " * 1300,
        "Ab " * 1300,
        "name is " * 500,
        f"a{' ' * 3900}x",
        "\n " * 2000,
        "1.1.1990 " * 440,
    ],
)
def test_claim_in_hostile_text_is_decided_at_once(text):
    started = time.thread_time()
    find_claim(text, [text, text])
    assert time.thread_time() - started < 0.15


def test_birth_date_among_too_many_dates_is_none():
    assert find_birth_date("I was born 12 March 1984. " + "1.2.1990 " * 9) is None


def test_claim_across_blanks_of_any_length_is_read():
    assert find_claim(f"Maria{' ' * 500}Ortega,\n \n\n12 March{' ' * 500}1984") == MARIA
