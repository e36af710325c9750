"""Links with which a member decides a card: who gets one, for whom, and how long it lasts (ADR 124)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import IntegrityError
from django.test import Client

from apps.approvals.cards import decision_links
from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.enums import Withdrawal
from apps.approvals.models import Card, DecisionLink
from apps.audit.models import AuditEntry
from apps.bus import retention
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card
from tests.factories.console import browser
from tests.factories.passkeys import enrolled
from tests.factories.tenants import make_member, make_tenant


def ask(card: Card, member: Any, *, key: str = "", client: Client | None = None, **body: Any) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    answer = (client or Client()).post(
        f"/api/v1/cards/{card.pk}/decision-links",
        json.dumps({"member": str(getattr(member, "pk", member)), **body}),
        "application/json",
        headers=headers,
    )
    return answer.status_code, answer.json()


def refusal(card: Card, member: Any, **more: Any) -> tuple[int, str]:
    status, said = ask(card, member, **more)
    return status, said["error"]["code"]


@pytest.fixture
def key(tenant: Any) -> str:
    with tenant_scope(tenant):
        return create_api_key("Messenger", scopes=(KeyScope.CARDS_DECIDE,)).key


@pytest.fixture
def card(tenant: Any) -> Card:
    return open_card(tenant, seconds=86_400)


@pytest.fixture(autouse=True)
def _passkey(tenant: Any, approver: Any) -> None:
    enrolled(tenant, approver)


def test_program_gets_a_link_for_a_member(card: Card, approver: Any, key: str, tenant: Any) -> None:
    status, said = ask(card, approver, key=key, minutes=10)
    assert status == 201
    assert urlsplit(said["url"]).path.startswith("/approve/")
    assert abs(datetime.fromisoformat(said["expires_at"]) - now() - timedelta(minutes=10)) < timedelta(seconds=30)
    with tenant_scope(tenant):
        row = DecisionLink.objects.get()
        entry = AuditEntry.objects.get(event="decision_link_created")
    secret = urlsplit(said["url"]).path.split("/")[2]
    assert row.hashed == sha256_hex(secret)
    assert row.user_id == approver.pk
    assert entry.actor.startswith("api_key:")
    assert json.loads(entry.data)["member"] == str(approver.pk)
    assert secret not in entry.data


def test_address_of_the_console_comes_before_that_of_the_request(
    card: Card, approver: Any, key: str, settings: Any
) -> None:
    settings.PASSKEY_ORIGIN = "https://console.example.test"
    assert ask(card, approver, key=key)[1]["url"].startswith("https://console.example.test/approve/")


def test_link_ends_with_its_card(tenant: Any, approver: Any) -> None:
    card = open_card(tenant, seconds=120)
    with tenant_scope(tenant):
        assert decision_links.create_decision_link(card, approver).row.expires_at == card.expires_at


@pytest.mark.parametrize("minutes", [0, 61, "x"])
def test_link_lasts_an_hour_at_most(card: Card, approver: Any, key: str, minutes: Any) -> None:
    assert refusal(card, approver, key=key, minutes=minutes) == (400, "invalid")


def test_database_refuses_a_longer_link(card: Card, approver: Any, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = decision_links.create_decision_link(card, approver).row
    with tenant_scope(tenant), pytest.raises(IntegrityError):
        DecisionLink.objects.filter(pk=row.pk).update(expires_at=row.created_at + timedelta(minutes=61))


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_member_who_may_not_decide_gets_none(card: Card, key: str, tenant: Any, role: str) -> None:
    assert refusal(card, make_member(tenant, role), key=key) == (403, "approver_required")


def test_member_without_a_passkey_gets_none(card: Card, key: str, owner: Any) -> None:
    assert refusal(card, owner, key=key) == (409, "passkey_missing")


def test_strangers_and_foreign_cards_are_not_found(card: Card, approver: Any, stranger: Any, key: str) -> None:
    elsewhere = make_tenant()
    assert refusal(card, stranger, key=key) == (404, "not_found")
    assert refusal(card, make_member(elsewhere, "owner"), key=key) == (404, "not_found")
    assert refusal(open_card(elsewhere), approver, key=key) == (404, "not_found")


def test_settled_card_gets_no_link(card: Card, approver: Any, key: str, tenant: Any) -> None:
    with tenant_scope(tenant):
        withdraw_card(card.pk, reason=Withdrawal.HANDOFF)
    assert refusal(card, approver, key=key) == (409, "card_withdrawn")


def test_key_needs_the_scope_of_decisions(card: Card, approver: Any, tenant: Any) -> None:
    with tenant_scope(tenant):
        reader = create_api_key("Reader", scopes=(KeyScope.CARDS_READ,)).key
    assert refusal(card, approver, key=reader) == (403, "forbidden_scope")
    assert refusal(card, approver) == (401, "not_authenticated")


def test_members_who_decide_may_ask_for_one(card: Card, approver: Any, owner: Any, agent: Any) -> None:
    assert ask(card, approver, client=browser(owner))[0] == 201
    assert refusal(card, approver, client=browser(agent)) == (403, "forbidden_role")


def test_secret_of_a_link_is_not_kept_for_a_repeated_request(card: Card, approver: Any, key: str, tenant: Any) -> None:
    headers = {"authorization": f"Bearer {key}", "idempotency-key": "one"}
    body = json.dumps({"member": str(approver.pk)})
    path = f"/api/v1/cards/{card.pk}/decision-links"
    first, again = (Client().post(path, body, "application/json", headers=headers) for _ in range(2))
    assert first.status_code == 201
    assert again.json()["error"]["code"] == "answer_not_kept"
    with tenant_scope(tenant):
        assert DecisionLink.objects.count() == 1


def test_links_that_ended_a_week_ago_are_deleted_in_parts(
    tenant: Any, other_tenant: Any, approver: Any, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_links, "_BATCH", 2)
    assert decision_links.delete_old in retention._tenant_steps
    with tenant_scope(tenant):
        links = [decision_links.create_decision_link(card, approver).row for _ in range(5)]
        for link, days in zip(links, (9, 8, 7.1, 6.9, 0), strict=True):
            ended = now() - timedelta(days=days)
            DecisionLink.objects.filter(pk=link.pk).update(created_at=ended - timedelta(minutes=1), expires_at=ended)
    with tenant_scope(other_tenant):
        assert decision_links.delete_old() is False
    with tenant_scope(tenant):
        assert decision_links.delete_old() is True
        assert DecisionLink.objects.filter(pk__in=[link.pk for link in links[:2]]).count() == 0
        assert decision_links.delete_old() is False
        assert set(DecisionLink.objects.values_list("pk", flat=True)) == {links[3].pk, links[4].pk}
