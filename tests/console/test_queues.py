"""Who sees the queues, who may decide about what failed, and what the page says."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.bus import services
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, make_message
from tests.factories.console import browser


def page(user: Any) -> str:
    return str(browser(user).get(reverse("console-queues")).content.decode())


def bury(tenant: Any, reason: str = "tool_failure") -> QueueMessage:
    message = make_message(tenant, scope_id=str(uuid4()))
    with tenant_scope(tenant):
        lease = services.lease("executor", consumer="worker:desk:1", scope_id=message.scope_id)
        assert lease is not None
        services.dead_letter(lease, reason)
    return message


def state(tenant: Any, message: QueueMessage) -> str:
    with tenant_scope(tenant):
        return str(QueueMessage.objects.get(pk=message.pk).state)


def address(word: str, message_id: Any) -> str:
    return reverse(f"console-queue-{word}", args=[message_id])


@pytest.mark.parametrize(
    ("role", "status"), [("owner", 200), ("approver", 200), ("agent", 403), ("viewer", 403), ("stranger", 403)]
)
def test_queues_are_seen_by_those_who_decide(
    tenant: Any, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    assert browser(request.getfixturevalue(role)).get(reverse("console-queues")).status_code == status


def test_queues_without_a_login_lead_to_it(database: None) -> None:
    assert browser().get(reverse("console-queues")).status_code == 302


def test_empty_queues_say_so(owner: Any) -> None:
    assert page(owner).count("nothing due") == len(Queue)


def test_holder_is_named_with_its_try(tenant: Any, owner: Any) -> None:
    make_message(tenant)
    with tenant_scope(tenant):
        lease_any("executor", consumer="worker:desk:1")
    shown = page(owner)
    assert "worker:desk:1" in shown
    assert "1 of 5" in shown


def test_dead_letter_is_shown_with_its_reason(tenant: Any, owner: Any) -> None:
    bury(tenant)
    assert "a tool failed" in page(owner)


def test_reason_is_only_text(tenant: Any, owner: Any) -> None:
    bury(tenant, "<script>alert(1)</script>")
    assert "<script>alert" not in page(owner)


def test_another_tenants_messages_are_not_shown(other_tenant: Any, owner: Any) -> None:
    bury(other_tenant, "foreign_reason")
    assert "foreign reason" not in page(owner)


def test_text_of_a_message_is_not_shown(tenant: Any, owner: Any) -> None:
    make_message(tenant, content="IBAN of Ada Byron", payload={"a": "IBAN of Ada Byron"})
    assert "Ada Byron" not in page(owner)


def test_approver_sees_no_button(tenant: Any, approver: Any) -> None:
    bury(tenant)
    assert ">Try again</button>" not in page(approver)


@pytest.mark.parametrize(("word", "after"), [("retry", "queued"), ("drop", "dropped")])
def test_owners_word_is_done(tenant: Any, owner: Any, word: str, after: str) -> None:
    message = bury(tenant)
    browser(owner).post(address(word, message.pk))
    assert state(tenant, message) == after


@pytest.mark.parametrize("word", ["retry", "drop"])
@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
def test_word_of_anybody_else_is_refused(tenant: Any, word: str, role: str, request: pytest.FixtureRequest) -> None:
    message = bury(tenant)
    answer = browser(request.getfixturevalue(role)).post(address(word, message.pk))
    assert answer.status_code == 403
    assert state(tenant, message) == "dead"


@pytest.mark.parametrize("word", ["retry", "drop"])
def test_foreign_message_is_not_found(other_tenant: Any, owner: Any, word: str) -> None:
    message = bury(other_tenant)
    answer = browser(owner).post(address(word, message.pk))
    assert answer.status_code == 404
    assert state(other_tenant, message) == "dead"


@pytest.mark.parametrize("word", ["retry", "drop"])
def test_second_word_about_a_message_is_a_conflict(tenant: Any, owner: Any, word: str) -> None:
    message = bury(tenant)
    browser(owner).post(address("drop", message.pk))
    assert browser(owner).post(address(word, message.pk)).status_code == 409


@pytest.mark.parametrize("word", ["retry", "drop"])
def test_word_by_a_link_is_refused(tenant: Any, owner: Any, word: str) -> None:
    assert browser(owner).get(address(word, bury(tenant).pk)).status_code == 405


def test_word_from_another_site_is_refused(tenant: Any, owner: Any) -> None:
    message = bury(tenant)
    answer = browser(owner, csrf=True).post(address("drop", message.pk))
    assert answer.status_code == 403
    assert state(tenant, message) == "dead"


def test_page_asks_no_more_for_more_messages(tenant: Any, owner: Any) -> None:
    asked = []
    for dead in (1, 2):
        for _ in range(dead):
            bury(tenant)
        client = browser(owner)
        with CaptureQueriesContext(connection) as queries:
            client.get(reverse("console-queues"))
        asked.append(len(queries))
    assert asked[0] == asked[1]
