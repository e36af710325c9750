"""Does each list of conversations hold what it says, page by page, at the same price for any number?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from apps.inbox import handoff, labels_and_replies, queries, services
from apps.inbox.enums import Shown
from apps.inbox.queries import Asked
from apps.sessions import chronicle, person_wanted
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member


def _talk(deployment: Any, text: str = "Hello") -> ChatSession:
    session = make_session(deployment)
    say(session, text)
    return session


def _listed(desk: Any, user: Any, **asked: Any) -> set[Any]:
    with tenant_scope(desk.tenant_id):
        return {one.session.pk for one in queries.conversations(Asked(**asked), user).rows}


def _known(session: ChatSession, **fields: Any) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(**fields)


@pytest.fixture
def house(deployment: Any, agent: Any, owner: Any) -> dict[str, Any]:
    """One conversation of each kind."""
    names = ("bot", "waits", "mine", "theirs", "assigned", "snoozed", "resolved")
    made = {name: _talk(deployment) for name in names}
    with tenant_scope(deployment.tenant_id):
        person_wanted.want_person(lock_session(made["waits"].pk))
        handoff.take_over(made["mine"].pk, agent)
        handoff.take_over(made["theirs"].pk, owner)
        services.assign(made["assigned"].pk, owner, to=agent)
        services.snooze(made["snoozed"].pk, agent, until=now() + timedelta(hours=1))
        services.resolve(made["resolved"].pk, agent)
    return {name: session.pk for name, session in made.items()}


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, {"bot", "waits", "mine", "theirs", "assigned"}),
        ({"shown": Shown.OPEN}, {"waits", "mine", "theirs", "assigned"}),
        ({"shown": Shown.BOT}, {"bot"}),
        ({"shown": Shown.SNOOZED}, {"snoozed"}),
        ({"shown": Shown.RESOLVED}, {"resolved"}),
        ({"shown": Shown.ANY}, {"bot", "waits", "mine", "theirs", "assigned", "snoozed", "resolved"}),
        ({"tab": "mine"}, {"mine", "assigned"}),
        ({"tab": "mine", "shown": Shown.RESOLVED}, set()),
        ({"tab": "unassigned"}, {"waits"}),
        ({"tab": "unassigned", "shown": Shown.BOT}, set()),
        ({"assignee": "nobody"}, {"bot", "waits"}),
    ],
)
def test_list_holds_what_it_says(
    deployment: Any, agent: Any, house: dict[str, Any], asked: dict[str, Any], names: set[str]
) -> None:
    assert _listed(deployment, agent, **asked) == {house[name] for name in names}


def test_counts_are_those_of_the_lists(deployment: Any, agent: Any, house: dict[str, Any]) -> None:
    with tenant_scope(deployment.tenant_id):
        assert queries.counts(agent, Asked()) == {
            "mine": 2,
            "unassigned": 1,
            "mentions": 0,
            "unread": 4,
            "overdue": 0,
        }


def test_list_is_narrowed_to_an_assignee(deployment: Any, agent: Any, house: dict[str, Any]) -> None:
    assert _listed(deployment, agent, assignee=str(agent.pk)) == {house["assigned"], house["mine"]}


def test_conversation_given_to_a_colleague_is_not_listed_under_who_answers(deployment: Any, agent: Any) -> None:
    session, colleague = _talk(deployment), make_member(deployment.tenant, role="agent")
    with tenant_scope(deployment.tenant_id):
        handoff.take_over(session.pk, agent)
        services.assign(session.pk, agent, to=colleague)
    assert _listed(deployment, agent, assignee=str(agent.pk)) == set()


def test_list_is_narrowed_to_a_deployment(deployment: Any, agent: Any) -> None:
    other = _talk(make_deployment(deployment.tenant))
    _talk(deployment)
    assert _listed(deployment, agent, deployment=other.deployment_id) == {other.pk}


def test_list_is_narrowed_to_a_queue(deployment: Any, agent: Any, house: dict[str, Any]) -> None:
    session = _talk(deployment)
    with tenant_scope(deployment.tenant_id):
        person_wanted.want_person(lock_session(session.pk), queue="second_line")
    assert _listed(deployment, agent, queue="second_line") == {session.pk}


def test_list_is_narrowed_to_a_level(deployment: Any, agent: Any, house: dict[str, Any]) -> None:
    session = _talk(deployment)
    _known(session, level="verified", customer="C-1", last_customer="C-1")
    assert _listed(deployment, agent, level="verified") == {session.pk}


# --- found


def test_search_finds_what_a_visitor_said(deployment: Any, agent: Any) -> None:
    session = _talk(deployment, "The parrot is broken")
    _talk(deployment, "Hello")
    assert _listed(deployment, agent, words="broken parrot") == {session.pk}


def test_search_finds_what_the_bot_said(deployment: Any, agent: Any) -> None:
    session = _talk(deployment)
    with tenant_scope(deployment.tenant_id):
        chronicle.append(lock_session(session.pk), kind=EntryKind.MESSAGE, sender=Sender.BOT, text="Try a lamp")
    assert _listed(deployment, agent, words="lamp") == {session.pk}


@pytest.mark.parametrize("words", ["maria", "Ortega", "C-77"])
def test_search_finds_a_name_and_a_customer(deployment: Any, agent: Any, words: str) -> None:
    session = _talk(deployment)
    _known(session, customer_name="Maria Ortega", last_customer="C-771")
    _talk(deployment)
    assert _listed(deployment, agent, words=words) == {session.pk}


def test_search_finds_a_visitor_by_the_name_they_are_shown_under(deployment: Any, agent: Any) -> None:
    session = _talk(deployment)
    assert session.pk in _listed(deployment, agent, words=session.visitor_name)


_ODD = ["'", '"', "a & | !", "%", "\\", "(", "':*", ":*", "!", "ffff", "- -", "'\\'' | 'jello", "_____", "\0"]
_ODD += ["x" * 10_240]


@pytest.mark.parametrize("words", _ODD)
def test_search_for_odd_words_is_no_error_and_finds_nothing(deployment: Any, agent: Any, words: str) -> None:
    _known(_talk(deployment), customer_name="Maria Ortega", last_customer="C-771")
    assert _listed(deployment, agent, words=words) == set()


@pytest.mark.parametrize("words", ["parr", "The par", "PARROT'S", '"parrot is bro"', "'parrot:*", "parrot -b"])
def test_search_finds_beginnings_of_what_was_said(deployment: Any, agent: Any, words: str) -> None:
    session = _talk(deployment, "The parrot's wing is broken")
    found = _listed(deployment, agent, words=words)
    assert found == (set() if words.startswith('"') else {session.pk})


def test_search_leaves_out_what_has_a_minus(deployment: Any, agent: Any) -> None:
    pipe = _talk(deployment, "A pipe leaks")
    _talk(deployment, "A pipe has burst")
    assert _listed(deployment, agent, words="pi -burst") == {pipe.pk}


@pytest.mark.parametrize(
    "words", ["marai", "ortga", "Ortegga", "Orrega", "maria ortge", "rteg", "or", "C771", "771", "ÉMILIE", "emilie"]
)
def test_search_forgives_typing_errors_in_names(deployment: Any, agent: Any, words: str) -> None:
    session = _talk(deployment)
    _known(session, customer_name="Maria Ortega-Émilie", last_customer="C771")
    _known(_talk(deployment), customer_name="Walter Orlando", last_customer="D3")
    found = _listed(deployment, agent, words=words)
    assert session.pk in found
    assert words == "or" or len(found) == 1


def test_search_takes_one_statement_more_than_a_list(
    deployment: Any, agent: Any, django_assert_num_queries: Any
) -> None:
    for number in range(3):
        _known(_talk(deployment, "The parrot"), customer_name=f"Maria {number}")
    with tenant_scope(deployment.tenant_id), django_assert_num_queries(7):
        assert len(queries.conversations(Asked(words="marai", shown=Shown.ANY), agent).rows) == 3


def test_search_shows_nothing_of_another_tenant(deployment: Any, other_tenant: Any) -> None:
    _talk(deployment, "Secret of the first tenant")
    theirs = make_deployment(other_tenant)
    assert _listed(theirs, make_member(other_tenant, "owner"), words="secret", shown=Shown.ANY) == set()


def test_search_does_not_find_notes(deployment: Any, agent: Any) -> None:
    session = _talk(deployment)
    with tenant_scope(deployment.tenant_id):
        services.note(session.pk, agent, "zanzibar")
    assert _listed(deployment, agent, words="zanzibar") == set()


def test_search_asks_the_index(deployment: Any) -> None:
    """Without the leakproof declaration, or with words that are not stored, row-level security would keep it out."""
    with tenant_scope(deployment.tenant_id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        said = queries.SAID.replace("entry.tenant_id = %s AND", "")  # by the tenant alone few rows are found faster
        cursor.execute("EXPLAIN " + said, ["'parr':*"])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "chronicle_words" in plan


@pytest.mark.parametrize(
    ("asked", "values"), [(queries.KNOWN, ["'ort'"]), (queries.NEAR, [["ort"], "'ort'", 10])], ids=["known", "near"]
)
def test_search_for_a_contact_asks_the_index(deployment: Any, asked: str, values: list[Any]) -> None:
    plain = asked.replace("known.tenant_id = %s AND", "").replace("tenant_id = %s AND", "")
    with tenant_scope(deployment.tenant_id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + plain, values)
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "session_by_contact" in plan


# --- page by page


def test_pages_are_without_a_gap_and_without_a_double(deployment: Any, agent: Any) -> None:
    made = [_talk(deployment) for _ in range(5)]
    at = now()
    for session in made[:4]:  # the same moment, so that only the id tells them apart
        _known(session, last_active_at=at)
    seen, place = [], ""
    with tenant_scope(deployment.tenant_id):
        for _ in range(3):
            part = queries.conversations(Asked(before=place), agent, limit=2)
            seen += [one.session.pk for one in part.rows]
            place = part.older
    assert sorted(seen) == sorted(session.pk for session in made)
    assert place == ""


@pytest.mark.parametrize("count", [1, 4])
def test_list_takes_the_same_statements_for_any_number(
    deployment: Any, agent: Any, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        session = _talk(deployment)
        with tenant_scope(deployment.tenant_id):
            label = labels_and_replies.save_label(agent, name=f"L{number}", colour="red")
            services.mark(session.pk, agent, label_id=label.pk, on=True)
            services.assign(session.pk, agent, to=agent)
    with tenant_scope(deployment.tenant_id), django_assert_num_queries(6):
        for one in queries.conversations(Asked(), agent).rows:
            assert one.labels
            assert one.standing.assignee.display_name
            assert one.session.deployment.title


def test_thousand_conversations_take_the_same_statements(
    deployment: Any, agent: Any, django_assert_num_queries: Any
) -> None:
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.bulk_create(
            ChatSession(
                deployment=deployment,
                resume_hash=f"{deployment.pk}{n}",
                seq=1,
                created_at=now(),
                last_active_at=now(),
            )
            for n in range(1000)
        )
        with django_assert_num_queries(6):
            assert len(queries.conversations(Asked(), agent).rows) == queries.PAGE


def test_counts_stop_where_nobody_reads_on(deployment: Any, agent: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.bulk_create(
            ChatSession(
                deployment=deployment,
                resume_hash=f"{deployment.pk}{n}",
                seq=1,
                wanted_person_at=now(),
                created_at=now(),
                last_active_at=now(),
            )
            for n in range(120)
        )
        assert queries.counts(agent, Asked())["unassigned"] == queries.COUNTED + 1


def test_conversation_without_a_word_is_in_no_list(deployment: Any, agent: Any) -> None:
    make_session(deployment)
    assert _listed(deployment, agent, shown=Shown.ANY) == set()


# --- beside one


def test_earlier_conversations_are_the_same_customers(deployment: Any) -> None:
    mine, before, other = _talk(deployment), _talk(deployment), _talk(deployment)
    for session, customer in ((mine, "C-1"), (before, "C-1"), (other, "C-2")):
        _known(session, level="verified", customer=customer, last_customer=customer)
    with tenant_scope(deployment.tenant_id):
        assert [one.pk for one in queries.earlier(ChatSession.objects.get(pk=mine.pk))] == [before.pk]


def test_visitor_nobody_knows_has_no_earlier_conversations(deployment: Any) -> None:
    session = _talk(deployment)
    _talk(deployment)
    with tenant_scope(deployment.tenant_id):
        assert queries.earlier(ChatSession.objects.get(pk=session.pk)) == []
