"""Codes by e-mail: only where enabled, to those who may decide, once, and nowhere else."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from django.core import mail

from apps.approvals.enums import PasskeyRule
from apps.approvals.models import ApprovalPolicy
from apps.audit.models import AuditEntry
from apps.bus.enums import Queue
from apps.safety.services import claim_code_email
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.passkeys import enrolled
from tests.factories.safety import DANGER, TO_CONFIRM, Agent, challenge_of, code_of, data, started
from tests.factories.tenants import make_member
from tests.factories.work import Hands
from tests.rivals import race


@pytest.fixture(autouse=True)
def codes_enabled(settings: Any) -> None:
    settings.SAFETY_MAIL_CODES, settings.EMAIL_HOST = True, "mail.example.test"


@pytest.fixture
def blocked(tenant: Any) -> Agent:
    agent = started(tenant)
    agent.report(DANGER)
    return agent


def send(tenant: Any) -> None:
    Hands(tenant).work(Queue.TRUSTED)


def letters_to(user: Any) -> list[Any]:
    return [letter for letter in mail.outbox if letter.to == [user.email]]


def code_in(letter: Any) -> str:
    found = re.search(r"The code: (\S+)", letter.body)
    assert found is not None
    return found[1]


def test_letter_goes_to_those_who_may_decide_and_its_code_works(
    blocked: Agent, owner: Any, approver: Any, agent: Any, viewer: Any, stranger: Any
) -> None:
    send(blocked.tenant)
    assert len(letters_to(owner)) == 1 == len(letters_to(approver))
    assert [letters_to(one) for one in (agent, viewer, stranger)] == [[], [], []]
    assert data(blocked.verify(challenge_of(blocked.report()), code_in(letters_to(owner)[0])))["verified"] is True


def test_letter_is_no_way_round_a_passkey(blocked: Agent, tenant: Any, owner: Any, approver: Any) -> None:
    enrolled(tenant, owner)
    send(tenant)
    assert letters_to(owner) == []
    assert len(letters_to(approver)) == 1


def test_no_code_leaves_where_every_approval_takes_a_passkey(blocked: Agent, tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(passkey=PasskeyRule.REQUIRED)
    send(tenant)
    assert letters_to(owner) == []


def test_nothing_leaves_unless_it_is_wanted(blocked: Agent, owner: Any, settings: Any) -> None:
    settings.SAFETY_MAIL_CODES = False
    send(blocked.tenant)
    assert letters_to(owner) == []


def test_what_needs_no_code_and_another_companys_hold_have_no_letter(
    blocked: Agent, owner: Any, other_tenant: Any
) -> None:
    foreign = make_member(other_tenant, "owner")
    started(other_tenant).report(TO_CONFIRM)
    send(other_tenant)
    send(blocked.tenant)
    assert letters_to(foreign) == []
    assert len(letters_to(owner)) == 1


def test_hold_is_told_of_once_by_however_many_processes(blocked: Agent, owner: Any) -> None:
    race(*[lambda: send(blocked.tenant)] * 3)
    send(blocked.tenant)
    assert len(letters_to(owner)) == 1


def test_sender_that_dies_after_it_made_the_code_sends_no_second_one(blocked: Agent, owner: Any) -> None:
    with tenant_scope(blocked.tenant):
        lease_any(Queue.TRUSTED, consumer="doomed", scope_id=f"safety_code_mail:{blocked.hold().pk}")
        claim_code_email(blocked.hold().pk)
    let_leases_run_out(blocked.tenant)
    send(blocked.tenant)
    assert letters_to(owner) == []


def test_no_letter_makes_a_code_void_that_somebody_looks_at(blocked: Agent, owner: Any) -> None:
    code = blocked.code()
    send(blocked.tenant)
    assert letters_to(owner) == []
    assert data(blocked.verify(challenge_of(blocked.report()), code))["verified"] is True


def test_code_on_the_console_makes_the_letters_void(blocked: Agent, owner: Any) -> None:
    send(blocked.tenant)
    blocked.code()
    assert code_of(blocked.verify(challenge_of(blocked.report()), code_in(letters_to(owner)[0]))) == "TOKEN_INVALID"


def test_code_of_a_letter_that_fails_is_in_no_line_and_no_entry(
    blocked: Agent, owner: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(subject: str, body: str, *args: Any) -> None:
        told.append(body)
        raise OSError(body)

    monkeypatch.setattr("apps.safety.handlers.send_mail", broken)
    caplog.set_level(logging.DEBUG)
    send(blocked.tenant)
    codes = re.findall(r"The code: (\S+)", "".join(told))
    assert codes and "safety_letter_not_sent" in caplog.text
    assert not [code for code in codes if code in caplog.text]
    with tenant_scope(blocked.tenant):
        assert AuditEntry.objects.order_by("-seq").values_list("event", "actor")[0] == ("safety_code_shown", "system")
