"""The activity feed: entries in words, newest first, with their evidence."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.urls import reverse

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import CardKind
from apps.audit.admin_base import changes_in
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.audit.writers import WORKERS_WRITE
from apps.console.names import Names
from apps.console.pages.activity.event_groups import GROUPS, HIGHLIGHTS, QUIET
from apps.console.pages.activity.feed import Sentence, describe_event
from apps.console.pages.activity.phrases import SENTENCES
from apps.inbox import handoff
from apps.tenants.services import change_deployment
from kernel.language import DEFAULT_LANGUAGE, MEMBER_LANGUAGES, in_language
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries, stranger_verdict, tampering, verdict
from tests.factories.cards import make_kind
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say


def _page(user: Any, **query: str) -> str:
    return str(browser(user).get(reverse("console-activity"), query).content.decode())


def _tell(event: str, data: dict[str, Any], **known: str) -> Sentence:
    return describe_event(
        event, actor="user:1", subject="card:2", data=data, names=Names({"user:1": "Ada", "card:2": "Pay", **known})
    )


def test_new_tenant_has_nothing_to_tell(owner: Any) -> None:
    assert "No activity yet" in _page(owner)


def test_decision_is_told_with_who_and_what(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        decide_card(card.pk, user=owner, verdict="approved")  # type: ignore[arg-type]
    assert f"<b>{owner.display_name} approved</b> Change the postal address on policy HM-20418" in _page(owner)


def test_newest_stands_first(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    with tenant_scope(tenant):
        decide_card(card.pk, user=owner, verdict="declined")  # type: ignore[arg-type]
    page = _page(owner)
    assert page.index("declined") < page.index("Approval requested")


def test_entry_about_a_card_leads_to_it(tenant: Any, owner: Any) -> None:
    card = make_card(tenant)
    assert f'href="{reverse("console-card", args=[card.pk])}"' in _page(owner)


def test_same_sentence_in_a_row_is_told_once_with_how_often(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        for _ in range(3):
            record(AuditEvent.STAFF_LOGGED_IN, actor=f"user:{owner.pk}", data={"role": "owner"})
    page = _page(owner)
    assert page.count("logged in</b>") == 1
    assert "3 times" in page


def test_take_over_is_told_with_the_conversation(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        handoff.take_over(session.pk, agent)
    page = _page(agent)
    assert f"{agent.display_name} took over" in page.replace("<b>", "")
    assert reverse("console-conversation", args=[session.pk]) in page


def test_story_is_paged_without_a_gap(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 60)
    client = browser(owner)
    first = client.get(reverse("console-activity"), {"show": "everything"})
    second = client.get(reverse("console-activity"), {"show": "everything", "before": first.context["older"]})
    seqs = [told.entry.seq for page in (first, second) for _, day in page.context["days"] for told in day]
    assert seqs == list(range(60, 0, -1))


@pytest.mark.parametrize("before", ["x", "-1", "9" * 40, "0"])
def test_broken_page_number_is_no_error(tenant: Any, owner: Any, before: str) -> None:
    assert browser(owner).get(reverse("console-activity"), {"before": before}).status_code == 200


@pytest.mark.parametrize("seq", ["0", "7", "9" * 40])
def test_unknown_entry_is_not_found(owner: Any, seq: str) -> None:
    assert browser(owner).get(f"/console/activity/{seq}/").status_code == 404


def test_entry_shows_what_is_hashed(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 1)
    page = browser(owner).get(reverse("console-entry", args=[1])).content.decode()
    assert "message_accepted" in page
    assert "genesis" in page


def test_filter_leaves_only_its_kind(tenant: Any, owner: Any) -> None:
    make_card(tenant)
    make_entries(tenant, 1)
    shown = browser(owner).get(reverse("console-activity"), {"show": "decisions"}).context["days"]
    assert [told.entry.event for _, day in shown for told in day] == [AuditEvent.CARD_OPENED]


def test_verify_of_a_whole_chain_says_so(tenant: Any, owner: Any) -> None:
    make_entries(tenant, 3)
    assert "all 3 entries verified" in browser(owner).post(reverse("console-verify")).content.decode()


def test_verify_names_the_first_bad_entry(tenant: Any, owner: Any, superuser_dsn: str) -> None:
    make_entries(tenant, 3)
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE audit_auditentry SET actor = 'x' WHERE chain = %s AND seq = 2", [tenant.pk])
    assert "Broken at entry 2 (content)" in browser(owner).post(reverse("console-verify")).content.decode()


def test_exported_bundle_is_verified_by_a_stranger(tenant: Any, owner: Any, tmp_path: Path) -> None:
    make_entries(tenant, 3)
    path = tmp_path / "bundle"
    path.write_bytes(browser(owner).post(reverse("console-export")).content)
    assert stranger_verdict(str(path)) == verdict("--tenant", tenant.slug)


def test_every_sentence_is_about_a_known_event() -> None:
    told = {name.split(":")[0] for name in SENTENCES} | HIGHLIGHTS | QUIET | frozenset().union(*GROUPS.values())
    assert told <= set(AuditEvent.values)


def test_every_event_stands_under_a_filter() -> None:
    assert frozenset().union(*GROUPS.values()) | QUIET == set(AuditEvent.values)


def test_batch_is_told_by_what_its_card_asks(tenant: Any, owner: Any) -> None:
    batch = uuid4()
    make_kind(tenant, CardKind.BATCH_REVIEW, subject_kind="batch", subject_id=batch)
    with tenant_scope(tenant):
        record(AuditEvent.BATCH_MOVED, subject=f"batch:{batch}", data={"status": "running"})
    assert "Archive 4 answered tickets is now running" in _page(owner, show="work")


@pytest.mark.parametrize(
    ("kind", "said"),
    [("post_execution", "Undo no longer offered"), ("plan", "No decision in time"), ("", "No decision in time")],
)
def test_end_of_an_offer_to_undo_does_not_say_that_nothing_was_changed(kind: str, said: str) -> None:
    told = _tell("card_expired", {"kind": kind}, **{"card:2": "Done: Change the address"})
    assert told.lead == said
    assert ("nothing was changed" in told.rest) == (kind != "post_execution")


@pytest.mark.parametrize("event", AuditEvent.values)
def test_every_event_can_be_told_without_data(event: str) -> None:
    assert _tell(event, {}).lead


def test_event_without_a_sentence_is_told_by_its_label() -> None:
    assert _tell("platform_scope_entered", {}).lead == "Data of more than one tenant was accessed"


def test_braces_in_a_name_are_only_text() -> None:
    assert _tell("card_opened", {}, **{"card:2": "{who} {0}"}).rest == "{who} {0}"


def test_changed_deployment_is_told_by_its_title_and_in_words(deployment: Any, owner: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        change_deployment(deployment, active_goal_id=uuid4())
    page = _page(owner)
    assert f"{deployment.title} (its goal)" in page
    assert "active_goal_id" not in page


def test_reason_code_is_told_in_words() -> None:
    assert "rejected by a person" in _tell("work_moved", {"status": "blocked", "reason": "approval_denied"}).rest


@pytest.mark.parametrize("language", MEMBER_LANGUAGES)
def test_translated_sentence_keeps_its_parts_and_its_fields(language: str) -> None:
    for event, (_mark, sentence) in SENTENCES.items():
        with in_language(DEFAULT_LANGUAGE):
            english = str(sentence)
        with in_language(language):
            translated = str(sentence)
        assert translated.count("|") == english.count("|"), event
        assert set(re.findall(r"{(\w+)}", translated)) == set(re.findall(r"{(\w+)}", english)), event


ODD = ["null", "true", "1e400", "[]", "{}", "[[1]]", "[{}]", '{"a":{"b":[]}}', '"{0}"']


@pytest.mark.parametrize("value", ODD)
def test_entry_of_a_taken_over_worker_stops_no_page(tenant: Any, owner: Any, value: str) -> None:
    """Its data is any JSON object that the database lets in."""
    names = sorted({name for _mark, sentence in SENTENCES.values() for name in re.findall(r"{(\w+)}", str(sentence))})
    data = "{" + ",".join(f'"{name}":{value}' for name in [*names, "fields", "before", "after", "seq"]) + "}"
    kinds = [(event.value, kind) for event, words in WORKERS_WRITE.items() for kind in words.split()]
    entries = [
        {"entry_id": str(uuid4()), "event": event, "actor": kind, "subject": f"tenant:{tenant.pk}", "data": data}
        for event, kind in kinds
    ]
    with psycopg.connect(os.environ["DATABASE_WORK_URL"]) as worker:
        worker.execute("SELECT set_config('silas.tenant', %s, true)", [str(tenant.pk)])
        worker.execute("SELECT audit_append(%s, %s, %s)", [tenant.pk, tenant.pk, json.dumps(entries)])
    for show in ("", *GROUPS):
        assert browser(owner).get(reverse("console-activity"), {"show": show}).status_code == 200
    assert browser(owner).get(reverse("console-entry", args=[1])).status_code == 200


@pytest.mark.parametrize("before", ODD)
@pytest.mark.parametrize("after", ODD)
def test_changes_of_an_entry_are_read_whatever_it_holds(before: str, after: str) -> None:
    assert isinstance(changes_in(f'{{"before":{before},"after":{after}}}'), list)


def test_entries_with_odd_ids_are_told(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        record(AuditEvent.TAKEN_OVER, actor="user:not-an-id", subject="session:")
    assert "A former member took over" in _page(owner).replace("<b>", "")
