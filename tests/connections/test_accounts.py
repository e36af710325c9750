"""A tool uses the one account that is meant, where a company has several, and otherwise none."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from apps.connections import credentials, permissions, queries, rules
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection
from apps.connections.rules import Account
from apps.connections.services import lifecycle
from apps.guard.schemas import CallContext
from apps.skills import rules as skill_rules
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.connections.links import make_skill
from tests.connections.test_permissions import opened, refused, said, tool
from tests.factories.connections import make_connection, reread
from tests.factories.console import browser

ACTIVE, PAUSED, FAILED = ConnectionStatus.ACTIVE, ConnectionStatus.PAUSED, ConnectionStatus.FAILED
ONE, TWO = uuid4(), uuid4()


def account(which: Any = ONE, status: ConnectionStatus = ACTIVE, usual: bool = False, skill: str = "mail") -> Account:
    return Account(which, skill, "post.test", status, usual)


@pytest.mark.parametrize(
    ("accounts", "found"),
    [
        ([], "connection_missing"),
        ([account()], ONE),
        ([account(status=PAUSED)], "connection_missing"),
        ([account(), account(TWO)], "connection_ambiguous"),
        ([account(), account(TWO, PAUSED)], "connection_ambiguous"),
        ([account(), account(TWO, usual=True)], TWO),
        ([account(), account(TWO, FAILED, usual=True)], "connection_missing"),
        ([account(), account(TWO, skill="calendar")], ONE),
    ],
)
def test_tool_that_names_a_skill_finds(accounts: list[Account], found: Any) -> None:
    said = rules.account_for("mail", accounts)
    assert (said if isinstance(said, str) else said.id) == found


def test_provider_of_accounts_of_two_skills_is_decided_by_who_was_chosen() -> None:
    both = [account(), account(TWO, skill="calendar")]
    assert rules.account_for("type:post.test", both) == "connection_ambiguous"
    chosen = account(TWO, skill="calendar", usual=True)
    assert rules.account_for("type:post.test", [account(), chosen]) == chosen


STATUSES = st.sampled_from([ACTIVE, PAUSED, FAILED])
ACCOUNTS = st.lists(st.builds(account, st.uuids(), STATUSES, usual=st.booleans(), skill=st.sampled_from("ab")))


@given(ACCOUNTS)
def test_name_is_offered_just_when_a_call_finds_its_account(accounts: list[Account]) -> None:
    for name in ("a", "b", "type:post.test"):
        assert (name in rules.usable_names(accounts)) == isinstance(rules.account_for(name, accounts), Account)


@given(ACCOUNTS)
def test_account_that_is_found_works_and_is_the_only_one_that_could_be_meant(accounts: list[Account]) -> None:
    found = rules.account_for("a", accounts)
    if isinstance(found, Account):
        assert found.status is ACTIVE
        assert all(one.id == found.id or (found.is_usual and not one.is_usual) for one in accounts if one.skill == "a")


# --- as rows


@pytest.fixture
def two(tenant: Any) -> tuple[Connection, Connection]:
    version = make_skill(tenant)
    skill = skill_rules.reference(version.name, version.digest)
    rows = make_connection(tenant, skill=skill, name="Shop"), make_connection(tenant, skill=skill, name="Office")
    with tenant_scope(tenant):
        for row in rows:
            credentials.store(row.pk, {"token": row.name})
    return rows


def choose(row: Connection) -> None:
    with tenant_scope(row.tenant_id):
        lifecycle.choose(row.pk, actor="system")


def test_of_two_accounts_a_tool_uses_none_until_somebody_chooses(tenant: Any, two: Any) -> None:
    assert (said(tenant, tool()), refused(tenant, tool())) == ("connection_ambiguous",) * 2
    choose(two[1])
    assert said(tenant, tool()) == ""
    assert opened(tenant, tool()) == {"token": "Office"}


def test_chosen_account_that_is_paused_has_no_stand_in(tenant: Any, two: Any) -> None:
    choose(two[0])
    with tenant_scope(tenant):
        lifecycle.pause(two[0].pk, actor="system")
    assert refused(tenant, tool()) == "connection_missing"


def test_account_that_was_never_connected_is_no_rival_and_cannot_be_chosen(tenant: Any, two: Any) -> None:
    with tenant_scope(tenant):
        Connection.objects.filter(pk=two[1].pk).update(status=FAILED)
        with pytest.raises(SilasError):
            lifecycle.choose(two[1].pk, actor="system")
    assert opened(tenant, tool()) == {"token": "Shop"}
    with tenant_scope(tenant):
        Connection.objects.filter(pk=two[1].pk).update(next_check_at=now())
    assert refused(tenant, tool()) == "connection_ambiguous"


def test_choice_moves_and_goes_with_its_account(tenant: Any, two: Any) -> None:
    for row in (two[0], two[1]):
        choose(row)
    assert [reread(row).is_usual for row in two] == [False, True]
    with tenant_scope(tenant):
        lifecycle.remove(two[1].pk, actor="system")
        assert queries.account_name("test-link") == "Shop"


def test_two_chosen_accounts_of_one_skill_cannot_stand(tenant: Any, two: Any) -> None:
    with tenant_scope(tenant), pytest.raises(IntegrityError):
        Connection.objects.update(is_usual=True)


def test_what_a_run_hands_back_goes_to_the_account_it_ran_with(tenant: Any, two: Any) -> None:
    """Somebody chooses another one while the tool runs."""
    choose(two[0])
    ctx = CallContext(tenant.pk, uuid4(), uuid4(), "send", {}, "", {})
    given = permissions.open_for_tool(ctx, tool())
    choose(two[1])
    permissions.store_for_tool(ctx, given.account, b'{"token": "renewed"}')
    with tenant_scope(tenant):
        assert [credentials.unseal_all(row.pk)["token"] for row in two] == ["renewed", "Office"]


def test_what_a_run_hands_back_is_dropped_where_its_account_was_removed(tenant: Any, two: Any) -> None:
    with tenant_scope(tenant):
        lifecycle.remove(two[0].pk, actor="system")
    ctx = CallContext(tenant.pk, uuid4(), uuid4(), "send", {}, "", {})
    permissions.store_for_tool(ctx, two[0].pk, b'{"token": "renewed"}')
    with tenant_scope(tenant):
        assert credentials.unseal_all(two[0].pk) == {}


def test_console_says_that_nobody_has_chosen_and_lets_one_choose(tenant: Any, owner: Any, two: Any) -> None:
    client, address = browser(owner), reverse("console-connection", args=[two[0].pk])
    assert "tools use none of them" in client.get(address).content.decode()
    assert "not used: select one" in client.get(reverse("console-connections")).content.decode()
    client.post(reverse("console-connection-choose", args=[two[0].pk]))
    assert "yes, instead of the other" in client.get(address).content.decode()
    assert "used by tools" in client.get(reverse("console-connections")).content.decode()
