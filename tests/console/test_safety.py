"""The page where agents wait for people: who sees it, the way out of every hold, the code, the policy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.safety import queries, services
from apps.safety.models import Challenge, Hold, PolicyVersion
from apps.safety.services.confirmations import allow
from apps.tenants.models import ApiKey
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.passkeys import ORIGIN, enrolled
from tests.factories.safety import DANGER, TO_CONFIRM, TO_VERIFY, Agent, challenge_of, data, policy, started

ROLES = ["owner", "approver", "agent", "viewer", "stranger"]
DECIDES = {"owner", "approver"}
FORM = {
    "mode": "enforcing",
    "tolerance": "moderate",
    "max_steps": "5",
    "challenge_seconds": "60",
    "step_window_seconds": "3600",
    "deny": "*drop*\n\n*wipe*\n",
    "requires_approval": "",
    "auto_approve": "",
    "note": "less",
    "seen": "0",
}


@pytest.fixture
def blocked(tenant: Any) -> Agent:
    agent = started(tenant)
    agent.report(DANGER)
    return agent


def page(user: Any, name: str = "console-safety", *args: Any) -> str:
    return str(browser(user).get(reverse(name, args=args)).content.decode())


def press(user: Any, word: str, *args: Any, csrf: bool = False, **sent: Any) -> Any:
    return browser(user, csrf=csrf).post(reverse(f"console-safety-{word}", args=args), sent)


@pytest.mark.parametrize("role", ROLES)
def test_page_is_seen_by_those_who_decide(tenant: Any, role: str, request: Any) -> None:
    answer = browser(request.getfixturevalue(role)).get(reverse("console-safety"))
    assert (answer.status_code == 200) is (role in DECIDES)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("word", ["allow", "code", "token"])
def test_hold_is_answered_by_those_who_decide(blocked: Agent, word: str, role: str, request: Any) -> None:
    answer = press(request.getfixturevalue(role), word, blocked.hold().pk)
    assert (answer.status_code == 403) is (role not in DECIDES)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("word", ["policy", "try", "key"])
def test_policy_and_keys_are_the_owners(tenant: Any, word: str, role: str, request: Any) -> None:
    answer = press(request.getfixturevalue(role), word)
    assert (answer.status_code == 403) is (role != "owner")


@pytest.mark.parametrize("word", ["allow", "code", "token"])
def test_without_a_login_nothing_is_answered(blocked: Agent, word: str) -> None:
    assert press(None, word, blocked.hold().pk).status_code == 302


@pytest.mark.parametrize("word", ["allow", "code", "token"])
def test_without_the_forms_token_nothing_happens(blocked: Agent, owner: Any, word: str) -> None:
    assert press(owner, word, blocked.hold().pk, csrf=True).status_code == 403
    assert blocked.hold().state == "open"


@pytest.mark.parametrize("word", ["allow", "code", "token"])
def test_hold_of_another_tenant_is_not_found(owner: Any, other_tenant: Any, word: str) -> None:
    foreign = started(other_tenant)
    foreign.report(DANGER)
    assert press(owner, word, foreign.hold().pk).status_code == 404
    assert press(owner, word, uuid4()).status_code == 404


def test_empty_page_says_what_to_do(owner: Any) -> None:
    shown = page(owner)
    assert "No agents are waiting" in shown
    assert "Create agent key" in shown


def test_block_is_shown_with_its_action_and_its_reasons(blocked: Agent, owner: Any) -> None:
    shown = page(owner)
    assert DANGER in shown
    assert "It drops a part of a database." in shown
    assert "Unblock" in shown


def test_one_press_unblocks(blocked: Agent, approver: Any) -> None:
    assert press(approver, "allow", blocked.hold().pk).status_code == 302
    assert blocked.report()["continue"] is True


def test_second_press_is_told_that_it_is_decided(blocked: Agent, owner: Any) -> None:
    hold = blocked.hold().pk
    press(owner, "allow", hold)
    assert press(owner, "allow", hold).status_code == 409


def test_code_stands_in_the_answer_alone_and_works(blocked: Agent, owner: Any) -> None:
    answer = press(owner, "code", blocked.hold().pk)
    code = answer.content.decode().partition('id="secret">')[2].partition("<")[0]
    assert "no-store" in answer.headers["Cache-Control"]
    assert code not in page(owner)
    assert data(blocked.verify(challenge_of(blocked.report()), code))["verified"] is True


def test_looking_at_a_code_is_audited(blocked: Agent, owner: Any) -> None:
    press(owner, "code", blocked.hold().pk)
    with tenant_scope(blocked.tenant):
        newest = AuditEntry.objects.order_by("-seq").first()
        assert newest.event == "safety_code_shown"
        assert newest.actor == f"user:{owner.pk}"


def test_looking_at_the_page_makes_no_code(blocked: Agent, owner: Any) -> None:
    page(owner)
    with tenant_scope(blocked.tenant):
        assert Challenge.objects.get().hashed == ""


def test_token_from_the_page_lifts_a_pause(tenant: Any, owner: Any) -> None:
    agent = started(tenant)
    agent.report(TO_CONFIRM)
    answer = press(owner, "token", agent.hold().pk).content.decode()
    token = answer.partition('id="secret">')[2].partition("<")[0]
    assert data(agent.confirm(TO_CONFIRM, token))["confirmed"] is True


def test_key_from_the_page_is_narrowed(tenant: Any, owner: Any) -> None:
    answer = press(owner, "key").content.decode()
    key = answer.partition('id="secret">')[2].partition("<")[0]
    with tenant_scope(tenant):
        assert ApiKey.objects.get(hashed=sha256_hex(key)).scopes == ["safety:agent"]


def test_policy_is_written_as_a_version(tenant: Any, owner: Any) -> None:
    assert press(owner, "policy", **FORM).status_code == 302
    with tenant_scope(tenant):
        row = PolicyVersion.objects.get()
        assert row.number == 1
        assert row.policy.max_steps == 5
        assert row.policy.deny == ("*drop*", "*wipe*")


def test_policy_that_somebody_else_changed_meanwhile_is_refused(tenant: Any, owner: Any) -> None:
    policy(tenant, max_steps=3)
    answer = press(owner, "policy", **FORM)
    assert answer.status_code == 409
    assert "Someone else changed" in answer.content.decode()


@pytest.mark.parametrize("wrong", [{"max_steps": "-1"}, {"mode": "off"}, {"deny": "x" * 501}])
def test_policy_that_makes_no_sense_is_not_stored(tenant: Any, owner: Any, wrong: dict[str, str]) -> None:
    assert press(owner, "policy", **FORM | wrong).status_code == 422
    with tenant_scope(tenant):
        assert not PolicyVersion.objects.exists()


def test_score_of_ones_own_is_written_and_shown_again(tenant: Any, owner: Any) -> None:
    press(owner, "policy", **FORM | {"scores": "90 *invoice*\n\n5 reading *"})
    assert "90 *invoice*" in page(owner, "console-safety-policy")
    agent = started(tenant)
    assert agent.report("show the invoice")["stopped"] is True


@pytest.mark.parametrize("line", ["x *a*", "101 *a*", "50", "-1 *a*", "\u0665 *a*"])
def test_score_that_is_none_is_not_stored(tenant: Any, owner: Any, line: str) -> None:
    assert press(owner, "policy", **FORM | {"scores": line}).status_code == 422
    with tenant_scope(tenant):
        assert not PolicyVersion.objects.exists()


def test_policy_of_one_key_holds_for_that_key_alone(tenant: Any, owner: Any) -> None:
    mine, other = started(tenant), started(tenant, "other")
    address = f"{reverse('console-safety-policy')}?of={mine.principal.ref}"
    assert browser(owner).post(address, FORM | {"deny": "*manual*"}).status_code == 302
    assert mine.report()["stopped"] is True
    assert other.report()["continue"] is True


def own_policy(user: Any, agent: Agent, word: str = "policy", **sent: Any) -> Any:
    return browser(user).post(f"{reverse(f'console-safety-{word}')}?of={agent.principal.ref}", sent)


def test_policy_of_ones_own_is_taken_back(tenant: Any, owner: Any) -> None:
    mine = started(tenant)
    own_policy(owner, mine, **FORM | {"deny": "*manual*"})
    assert own_policy(owner, mine, "take-back").status_code == 302
    assert mine.report()["continue"] is True
    with tenant_scope(tenant):
        newest = AuditEntry.objects.filter(event__startswith="safety_policy").order_by("-seq")[0]
        assert newest.event == "safety_policy_taken_back"
        assert newest.actor == f"user:{owner.pk}"
        assert queries.policy_of(mine.principal.ref) == queries.policy_of("")


def test_policy_that_was_taken_back_is_said_again(tenant: Any, owner: Any) -> None:
    mine = started(tenant)
    own_policy(owner, mine, **FORM | {"deny": "*manual*"})
    own_policy(owner, mine, "take-back")
    browser(owner).post(f"{reverse('console-safety-roll-back', args=[1])}?of={mine.principal.ref}")
    assert mine.report()["stopped"] is True


def test_what_is_no_own_policy_is_not_taken_back(tenant: Any, owner: Any) -> None:
    mine = started(tenant)
    assert own_policy(owner, mine, "take-back").status_code == 409
    own_policy(owner, mine, **FORM)
    own_policy(owner, mine, "take-back")
    assert own_policy(owner, mine, "take-back").status_code == 409 == press(owner, "take-back").status_code


def test_policy_taken_back_by_a_member_who_is_no_owner_stays(tenant: Any, owner: Any, approver: Any) -> None:
    mine = started(tenant)
    own_policy(owner, mine, **FORM | {"deny": "*manual*"})
    assert own_policy(approver, mine, "take-back").status_code == 403
    assert mine.report()["stopped"] is True


def test_policy_of_a_foreign_or_made_up_principal_is_not_found(owner: Any, other_tenant: Any) -> None:
    for ref in (started(other_tenant).principal.ref, "user:1"):
        address = f"{reverse('console-safety-policy')}?of={ref}"
        assert browser(owner).get(address).status_code == 404 == browser(owner).post(address, FORM).status_code


def test_policy_is_tried_without_being_written(tenant: Any, owner: Any) -> None:
    started(tenant).report()
    shown = press(owner, "policy", **FORM | {"deny": "*manual*", "dry": "1"}).content.decode()
    assert "would change 1 of the newest 1 recorded decision" in shown
    with tenant_scope(tenant):
        assert not PolicyVersion.objects.exists()


def test_trends_count_directives_blocks_and_prompts(tenant: Any, owner: Any) -> None:
    agent = started(tenant)
    for hint in ("reading the manual", TO_CONFIRM, TO_CONFIRM, DANGER):
        agent.report(hint)
    shown = page(owner)
    assert "<td>4</td><td>3</td><td>1</td>" in shown
    assert "per held action: 1." in shown


def test_earlier_version_is_said_again(tenant: Any, owner: Any) -> None:
    policy(tenant, max_steps=3)
    policy(tenant, max_steps=9)
    assert press(owner, "roll-back", 1).status_code == 302
    with tenant_scope(tenant):
        assert [row.policy.max_steps for row in PolicyVersion.objects.all()] == [3, 9, 3]


def test_template_fills_the_form_and_is_not_in_force(tenant: Any, owner: Any) -> None:
    shown = browser(owner).get(reverse("console-safety-policy"), {"template": "conservative"}).content.decode()
    assert "*production*" in shown
    with tenant_scope(tenant):
        assert not PolicyVersion.objects.exists()


def test_tried_hint_is_judged_and_holds_nobody(tenant: Any, owner: Any) -> None:
    shown = press(owner, "try", hint=DANGER).content.decode()
    assert "Stopped" in shown
    assert "It drops a part of a database." in shown
    with tenant_scope(tenant):
        assert not Hold.objects.exists()


def test_recorded_steps_are_tried_on_the_policy(tenant: Any, owner: Any) -> None:
    agent = started(tenant)
    agent.report()
    policy(tenant, deny=["*manual*"])
    assert "would change 1 of the newest 1 recorded decision" in press(owner, "try", hint="").content.decode()


def test_page_says_when_nobody_is_held(tenant: Any, owner: Any) -> None:
    policy(tenant, mode="monitoring")
    assert "No agents are on hold" in page(owner)


def test_hint_of_an_agent_is_text_and_no_markup(tenant: Any, owner: Any) -> None:
    agent = started(tenant)
    agent.report("<script>alert(1)</script> update it")
    assert "<script>alert" not in page(owner)


HOLDS = {"confirm": TO_CONFIRM, "verify": TO_VERIFY, "block": DANGER}


@pytest.mark.parametrize("hint", HOLDS.values(), ids=HOLDS)
def test_every_hold_has_its_way_out_on_one_screen(tenant: Any, approver: Any, hint: str) -> None:
    agent = started(tenant)
    agent.report(hint)
    way_out = reverse("console-safety-allow", args=[agent.hold().pk])
    assert f'action="{way_out}"' in page(approver)
    assert browser(approver).post(way_out).status_code == 302
    assert "No agents are waiting" in page(approver)


def test_block_of_our_own_chatbot_has_its_way_out_there_too(tenant: Any, owner: Any) -> None:
    policy(tenant, deny=["*"])
    with tenant_scope(tenant):
        services.judge_internal_call("tenant:x", name="chat", intent="run_skill", tool="look", args={})
        hold = Hold.objects.get()
    assert reverse("console-safety-allow", args=[hold.pk]) in page(owner)
    press(owner, "allow", hold.pk)
    assert "No agents are waiting" in page(owner)


def test_hold_says_how_old_it_is(blocked: Agent, owner: Any) -> None:
    with tenant_scope(blocked.tenant):
        Hold.objects.update(created_at=now() - timedelta(hours=3))
    assert "3 h ago" in page(owner)


@pytest.fixture
def named(settings: Any) -> None:
    settings.PASSKEY_ORIGIN = ORIGIN


def test_page_asks_whoever_has_a_passkey_for_it(blocked: Agent, tenant: Any, owner: Any, approver: Any) -> None:
    enrolled(tenant, owner)
    asks = reverse("console-safety-step-up", args=[blocked.hold().pk, "allow"])
    assert f'data-step-up-at="{asks}"' in page(owner)
    assert asks not in page(approver)
    assert browser(approver).post(asks).json() == {"options": None}


def test_passkeys_answer_unblocks_from_the_page(blocked: Agent, tenant: Any, owner: Any, named: None) -> None:
    device, hold = enrolled(tenant, owner), blocked.hold().pk
    assert press(owner, "allow", hold).status_code == 403
    asks = reverse("console-safety-step-up", args=[hold, "allow"])
    assert press(owner, "code", hold, step_up=device.get(again(owner, asks))).status_code == 409
    assert "No agents are waiting" not in page(owner)
    assert press(owner, "allow", hold, step_up=device.get(again(owner, asks))).status_code == 302


def again(user: Any, asks: str) -> Any:
    return browser(user).post(asks).json()["options"]


@pytest.mark.parametrize("what", ["approve", "register", "step_up"])
def test_passkey_is_asked_for_no_other_press(blocked: Agent, owner: Any, what: str) -> None:
    assert press(owner, "step-up", blocked.hold().pk, what).status_code == 404


@pytest.mark.parametrize("role", ROLES)
def test_question_for_a_passkey_is_asked_by_those_who_decide(blocked: Agent, role: str, request: Any) -> None:
    answer = press(request.getfixturevalue(role), "step-up", blocked.hold().pk, "allow")
    assert (answer.status_code == 403) is (role not in DECIDES)


def test_lifted_hold_leaves_the_page(blocked: Agent, owner: Any) -> None:
    with tenant_scope(blocked.tenant):
        allow(blocked.hold().pk, actor="user:test")
    assert "No agents are waiting" in page(owner)
