"""Automations: who sees, stops and changes them, and what their pages show."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.autonomy import services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import AutonomousSession, Notification
from apps.guard.models import GuardedRun
from kernel.tenancy import tenant_scope
from tests.console.runs import post, said, text
from tests.factories.autonomy import House, make_house
from tests.factories.console import browser


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


@pytest.fixture
def other(other_tenant: Any) -> House:
    return make_house(other_tenant)


CHANGES = ("console-task-run", "console-task-release", "console-task-delete", "console-when-add", "console-task-edit")
OF_TRIGGER = ("console-when-turn", "console-when-delete")
OF_SESSION = ("console-run-halt", "console-run-retry")


@pytest.mark.parametrize("role", ["viewer", "stranger"])
def test_change_by_who_may_not_is_refused(house: House, role: str, request: pytest.FixtureRequest) -> None:
    """Members without permission are refused before anything is looked up."""
    user = request.getfixturevalue(role)
    answers = [post(user, name, uuid4()).status_code for name in (*CHANGES, *OF_TRIGGER, *OF_SESSION)]
    assert set(answers) == {403}


def test_change_by_an_agent_is_refused(house: House, agent: Any) -> None:
    answers = [post(agent, name, uuid4()).status_code for name in (*CHANGES, *OF_TRIGGER, "console-run-retry")]
    assert set(answers) == {403}


def test_another_tenants_ids_are_not_found(house: House, other: House) -> None:
    task = other.task()
    trigger = other.trigger(task, TriggerKind.INTERVAL, seconds=3600)
    session = other.run_now(task)
    changes = [*[(name, task) for name in CHANGES], *[(name, trigger) for name in OF_TRIGGER]]
    changes += [(name, session) for name in OF_SESSION]
    reads = [("console-task", task), ("console-task-edit", task)]
    reads += [("console-run", session), ("console-run-receipt", session)]
    client = browser(house.owner)
    answers = [client.post(reverse(name, args=[row.pk]), said(house)).status_code for name, row in changes]
    answers += [client.get(reverse(name, args=[row.pk])).status_code for name, row in reads]
    assert set(answers) == {404}


def test_another_tenants_tasks_are_not_shown(house: House, other: House) -> None:
    other.task(name="Theirs")
    assert "Theirs" not in text(house.owner, "console-runs")


def test_change_by_a_link_is_refused(house: House) -> None:
    client, names = browser(house.owner), (*CHANGES[:4], *OF_TRIGGER, *OF_SESSION)
    assert {client.get(reverse(name, args=[uuid4()])).status_code for name in names} == {405}


def test_halt_from_another_site_is_refused(house: House) -> None:
    session = house.run_now(house.task())
    browser(house.owner, csrf=True).post(reverse("console-run-halt", args=[session.pk]))
    assert house.session(session.pk).status == "queued"


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_runs_are_seen_by_every_member(house: House, role: str, request: pytest.FixtureRequest) -> None:
    session = house.run_now(house.task(name="Look at it"))
    user = request.getfixturevalue(role)
    pages = [text(user, "console-runs"), text(user, "console-run", session.pk)]
    assert all("Look at it" in page for page in pages)


def test_runs_without_a_login_lead_to_it(database: None) -> None:
    assert browser().get(reverse("console-runs")).status_code == 302


@pytest.mark.parametrize("role", ["approver", "agent"])
def test_halt_by_who_answers_ends_what_waits(house: House, role: str, request: pytest.FixtureRequest) -> None:
    """Only the owner has opted in; stopping does not depend on that."""
    session = house.run_now(house.task())
    post(request.getfixturevalue(role), "console-run-halt", session.pk)
    assert house.session(session.pk).status == "cancelled"


def test_halt_button_is_there_while_it_runs_and_not_after(house: House, agent: Any) -> None:
    session = house.run_now(house.task())
    before = text(agent, "console-run", session.pk)
    post(agent, "console-run-halt", session.pk)
    after = text(agent, "console-run", session.pk)
    halt = reverse("console-run-halt", args=[session.pk])
    assert halt in before
    assert halt not in after


def test_halt_twice_and_of_one_that_is_over_changes_nothing(house: House) -> None:
    session = house.through(house.task())
    answers = [post(house.owner, "console-run-halt", session.pk).status_code for _ in range(2)]
    assert answers == [302, 302]
    assert house.session(session.pk).status == "completed"


def test_viewer_sees_no_button(house: House, viewer: Any) -> None:
    session = house.run_now(house.task())
    shown = text(viewer, "console-run", session.pk)
    assert "<form" not in shown.partition("<main")[2].partition("</main>")[0]


def test_company_that_has_switched_off_is_told_so(house: House) -> None:
    house.do(services.change_settings, user=house.owner, enabled=False)
    assert "Automations are off" in text(house.owner, "console-runs")


def test_running_a_task_that_may_not_begin_says_why_and_is_logged(house: House) -> None:
    task = house.task()
    house.do(services.change_settings, user=house.owner, enabled=False)
    answer = post(house.owner, "console-task-run", task.pk)
    with tenant_scope(house.tenant):
        logged = AuditEntry.objects.filter(event="spawn_refused", subject=f"task:{task.pk}").count()
    assert answer.status_code == 409
    assert "turned off" in answer.content.decode()
    assert logged == 1


def test_absurd_cap_begins_nothing(house: House) -> None:
    task, caps = house.task(), ("-1", "NaN", "Infinity", "1e9", "ten", "0x10", "0.0000000001", "1e-999")
    answers = {post(house.owner, "console-task-run", task.pk, cap_usd=cap).status_code for cap in caps}
    assert answers == {422}
    assert house.sessions() == []


def test_cap_given_by_hand_holds(house: House) -> None:
    post(house.owner, "console-task-run", house.task().pk, cap_usd="0.01")
    (session,) = house.sessions()
    assert str(session.frozen_limits.cost_usd) == "0.01"


def test_quarantined_task_shows_its_reason_and_is_let_go_by_hand(house: House) -> None:
    task = house.task()
    house.change(task, quarantined_at="2026-01-01T00:00Z", quarantine_reason="worker_lost")
    before = text(house.owner, "console-runs")
    post(house.owner, "console-task-release", task.pk)
    assert "Failed too often: the worker process was lost." in before
    assert ">Try again</button>" in before
    assert ">Try again</button>" not in text(house.owner, "console-runs")


def test_finished_session_shows_its_whole_receipt(house: House) -> None:
    session = house.through(house.task(name="Look at it"))
    shown = text(house.owner, "console-run", session.pk)
    wanted = ("Completed.", "Deliver", "Calls", "View receipt as JSON", "$0.00 of $0.50")
    assert [words for words in wanted if words not in shown] == []


def test_proof_leads_to_the_log(house: House) -> None:
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        entry = AuditEntry.objects.get(event="autonomous_ended", subject=f"autonomous:{session.pk}")
    assert reverse("console-entry", args=[entry.seq]) in text(house.owner, "console-run", session.pk)


def test_activity_tells_of_it_by_the_tasks_name(house: House) -> None:
    house.through(house.task(name="Nightly look"))
    assert "<b>Automation completed</b> Nightly look" in text(house.owner, "console-activity")


def test_receipt_as_json_is_the_stored_one(house: House) -> None:
    session = house.through(house.task())
    answer = browser(house.owner).get(reverse("console-run-receipt", args=[session.pk]))
    assert answer.json() == session.receipt


def test_words_of_a_session_are_only_text(house: House) -> None:
    session = house.through(house.task(name="<script>alert(1)</script>"))
    house.change(session, output="<img src=x onerror=alert(2)>")
    shown = text(house.owner, "console-run", session.pk) + text(house.owner, "console-runs")
    assert "<script>alert" not in shown
    assert "<img" not in shown


def test_list_says_what_each_run_found(house: House) -> None:
    house.change(house.through(house.task()), output="2 promises are late.")
    assert "2 promises are late." in text(house.owner, "console-runs")


def test_what_cannot_be_seen_in_a_result_is_written_out(house: House) -> None:
    session = house.through(house.task())
    house.change(session, output="pay\u202eoot")
    assert "\u202e" not in text(house.owner, "console-run", session.pk)


def test_page_asks_no_more_for_more_sessions(house: House) -> None:
    task, asked = house.task(), []
    for more in (1, 2):
        for _ in range(more):
            house.run_now(task)
            house.run_now(house.task(name=str(uuid4())))
        client = browser(house.owner)
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse("console-runs"))
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_retry_begins_a_new_session(house: House) -> None:
    session = house.through(house.task())
    answer = post(house.owner, "console-run-retry", session.pk)
    assert answer.status_code == 302
    assert len(house.sessions()) == 2


@pytest.mark.parametrize("name", ["console-task-run", "console-run-retry"])
def test_form_that_is_sent_twice_begins_one_session(house: House, name: str) -> None:
    """As when a button is clicked twice: both requests lead to the same run."""
    task = house.task()
    row = house.through(task) if name == "console-run-retry" else task
    before, once = len(house.sessions()), str(uuid4())
    client = browser(house.owner)
    answers = [client.post(reverse(name, args=[row.pk]), {"once": once}) for _ in range(2)]
    assert len(house.sessions()) - before == 1
    assert {answer["Location"] for answer in answers} == {reverse("console-run", args=[house.sessions()[-1].pk])}


def test_forms_that_begin_something_can_be_told_apart(house: House) -> None:
    session = house.through(house.task())
    page = (text(house.owner, "console-runs"), text(house.owner, "console-task", session.task_id))
    assert all('name="once"' in shown for shown in (*page, text(house.owner, "console-run", session.pk)))


def test_form_whose_mark_is_none_is_refused(house: House) -> None:
    answer = post(house.owner, "console-task-run", house.task().pk, once="x" * 300)
    assert answer.status_code == 422
    assert house.sessions() == []


def test_retry_of_one_under_way_is_a_conflict(house: House) -> None:
    session = house.run_now(house.task())
    assert post(house.owner, "console-run-retry", session.pk).status_code == 409


def test_money_of_a_session_under_way_is_drawn(house: House) -> None:
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        AutonomousSession.objects.filter(pk=session.pk).update(receipt=None)
        GuardedRun.objects.filter(pk=session.run_id).update(cost_total="0.000042", cost_reserved="0.4")
    shown = text(house.owner, "console-run", session.pk)
    assert "$0.000042 of $0.50" in shown
    assert "$0.40 reserved" in shown


def test_notice_is_read_once_and_only_by_whom_it_is_for(house: House, approver: Any) -> None:
    house.through(house.task(route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    refused = post(approver, "console-notice-read", notice.pk).status_code
    before = text(house.owner, "console-notices", unread="true")
    post(house.owner, "console-notice-read", notice.pk)
    again = post(house.owner, "console-notice-read", notice.pk).status_code
    after = text(house.owner, "console-notices", unread="true")
    assert refused == 404
    assert "View run" in before
    assert again == 302
    assert "No unread notifications" in after


def test_all_notices_are_read_at_once(house: House) -> None:
    house.through(house.task(route={"kind": "notify"}))
    post(house.owner, "console-notices-read")
    assert "unread-count" not in text(house.owner, "console-notices")
