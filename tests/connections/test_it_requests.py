"""The message to an IT department: a draft that staff change, and that is sent only by approved work (spec 5.10.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.models import Card
from apps.connections import credentials
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, ItRequest
from apps.connections.services import recovery
from apps.skills import rules as skill_rules
from apps.skills.services import install_version
from apps.work.models import WorkItem
from kernel.tenancy import tenant_scope
from sandbox import Choice, configure
from silas_platform import demo
from tests.connections.links import said_yes
from tests.factories.connections import make_connection
from tests.factories.console import browser
from tests.factories.work import Hands
from tests.services import mail
from tests.services.mail import MailServer

BLOCKED = {"failure_type": "enterprise_policy_block"}
LETTER = {"to": "it@company.example", "subject": "Please allow it", "text": "We need it.\nThank you."}


@pytest.fixture
def row(tenant: Any, owner: Any) -> Connection:
    """A connection that the company's policy forbids, with a draft."""
    made = make_connection(
        tenant,
        status=ConnectionStatus.FAILED,
        failure=BLOCKED,
        settings={"client_id": "abc-123", "admin_consent_url": "https://login.example.test/adminconsent"},
        initial_permissions=["Mail.Read", "Mail.Send"],
        callback="https://house.example/connections/callback",
    )
    with tenant_scope(tenant):
        recovery.open_failure_card(Connection.objects.get(pk=made.pk))
    said_yes(tenant, made, owner, "request_admin_approval")
    return made


def press(user: Any, row: Connection, **sent: str) -> Any:
    return browser(user).post(reverse("console-connection-it-request", args=[row.pk]), {**LETTER, **sent})


def kept(row: Connection) -> ItRequest:
    with tenant_scope(row.tenant_id):
        return ItRequest.objects.get()


def test_choice_on_the_card_prepares_the_message_of_the_rows(row: Connection) -> None:
    text = kept(row).text
    for part in ("abc-123", row.callback, "Mail.Read: to read", "Mail.Send: to change or send", "adminconsent"):
        assert part in text


def test_message_is_on_the_connections_page_to_change_copy_and_send(row: Connection, owner: Any) -> None:
    page = browser(owner).get(reverse("console-connection", args=[row.pk])).content.decode()
    assert all(part in page for part in ("abc-123", 'href="mailto:', 'data-copy="it-copy"', ">Save</button>"))
    assert "every 2s" not in page  # somebody may be typing
    assert "Request approval to send" not in page  # there is no mail account


def test_changed_message_is_kept_and_nothing_is_asked(row: Connection, owner: Any) -> None:
    assert press(owner, row).status_code == 302
    found = kept(row)
    assert (found.to, found.subject, found.text) == tuple(LETTER.values())
    with tenant_scope(row.tenant_id):
        assert not WorkItem.objects.exists()


@pytest.mark.parametrize(
    "sent",
    [
        {"to": "a@b.example, c@d.example"},
        {"to": "no address"},
        {"to": "a@b.example\nBcc: x@y.example"},
        {"subject": ""},
        {"text": " "},
        {"text": "x" * 10_001},
    ],
)
def test_message_that_does_not_fit_is_not_kept(row: Connection, owner: Any, sent: dict[str, str]) -> None:
    before = kept(row).text
    assert press(owner, row, **sent).status_code == 422
    assert kept(row).text == before


def test_nobody_changes_a_message_that_nobody_asked_for(tenant: Any, owner: Any) -> None:
    assert press(owner, make_connection(tenant)).status_code == 409


def test_without_a_mail_account_nothing_is_sent(row: Connection, owner: Any) -> None:
    assert press(owner, row, act="send").status_code == 409
    with tenant_scope(row.tenant_id):
        assert not WorkItem.objects.exists()


@pytest.fixture
def post(tenant: Any) -> Iterator[MailServer]:
    """A mailbox that is connected."""
    with mail.serving() as server:
        configure(Choice(egress_private=(server.place,)))
        with tenant_scope(tenant):
            version = install_version(demo.SKILLS / "smtp-mail")
        made = make_connection(
            tenant,
            name="Office mail",
            skill=skill_rules.reference(version.name, version.digest),
            skill_name="smtp-mail",
            permissions_granted=["mail.send"],
            settings=server.settings,
        )
        with tenant_scope(tenant):
            credentials.store(made.pk, {"password": mail.PASSWORD})
        yield server
        configure(Choice())


def test_message_is_sent_by_work_after_its_approval_and_not_before(
    tenant: Any, owner: Any, approver: Any, row: Connection, post: MailServer
) -> None:
    assert press(owner, row, act="send").status_code == 302
    with tenant_scope(tenant):
        item = WorkItem.objects.get()
        card = Card.objects.get(subject_id=item.pk)
    assert card.kind == "draft_review"
    assert card.body["draft"] == LETTER["text"]
    assert kept(row).work_item_id == item.pk
    hands = Hands(tenant)
    hands.work()
    assert post.taken == []
    said_yes(tenant, item, approver)
    hands.work()
    (sent,) = post.taken
    assert sent["To"] == LETTER["to"]
    assert sent["Subject"] == LETTER["subject"]
    assert hands.item(item.pk).status == "done"


def test_message_that_was_declined_is_not_sent(
    tenant: Any, owner: Any, approver: Any, row: Connection, post: MailServer
) -> None:
    press(owner, row, act="send")
    with tenant_scope(tenant):
        item = WorkItem.objects.get()
    said_yes(tenant, item, approver, "decline")
    Hands(tenant).work()
    assert post.taken == []
