"""Gates in the administration: each save is a version, nothing is overwritten, nothing is deleted."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.gates.models import Gate
from apps.gates.queries import active_gates, versions_of
from apps.gates.services import save_gate, write_version
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member
from tests.gates.test_rows import spec
from tests.platform.administration import browser_of, page_of


def filled(**fields: Any) -> dict[str, Any]:
    blank = {"name": "words", "on": "every_user_message", "provider": "predicate", "type": "regex", "seen": 0}
    return {**blank, "config": '{"pattern": "."}', "order": 100, "on_block": "report", **fields}


def only_gate(tenant: Any) -> Gate:
    with tenant_scope(tenant):
        gate: Gate = Gate.objects.get()
        return gate


def test_owner_adds_a_gate_as_a_draft(keeper: Client, tenant: Any) -> None:
    keeper.post(page_of(Gate, "add"), filled(note="First try"))
    gate = only_gate(tenant)
    with tenant_scope(tenant):
        assert (gate.status, [version.note for version in versions_of(gate)]) == ("draft", ["First try"])


def test_superuser_adds_a_gate_to_the_tenant_they_name(root: Client, tenant: Any) -> None:
    root.post(page_of(Gate, "add"), filled(tenant=tenant.pk))
    assert only_gate(tenant).name == "words"


def test_broken_gate_is_refused_with_the_reason(keeper: Client, tenant: Any) -> None:
    page = keeper.post(page_of(Gate, "add"), filled(config='{"pattern": "("}')).content.decode()
    with tenant_scope(tenant):
        assert "ot a regular expression" in page and not Gate.objects.exists()


def test_save_writes_another_version_and_leaves_what_is_in_force(keeper: Client, tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words"))
    keeper.post(page_of(Gate, "change", gate.pk), filled(config='{"pattern": "x"}', seen=1))
    with tenant_scope(tenant):
        found = [one.config["pattern"] for one in active_gates(deployment.pk).value]
    assert (only_gate(tenant).draft, found) == (2, ["."])


def test_save_and_put_in_force_does_both(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words"))
    data = filled(config='{"pattern": "x"}', seen=1, _put_in_force="on")
    keeper.post(page_of(Gate, "change", gate.pk), data)
    assert only_gate(tenant).active == 2


def test_name_cannot_be_changed(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words"))
    keeper.post(page_of(Gate, "change", gate.pk), filled(name="other", config='{"pattern": "x"}', seen=1))
    gate = only_gate(tenant)
    assert (gate.name, gate.newest) == ("words", 2)


def test_form_that_is_out_of_date_stores_nothing(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words")).gate
        write_version(spec("words", on_block="other"))
    answer = keeper.post(page_of(Gate, "change", gate.pk), filled(config='{"pattern": "x"}', seen=1))
    assert (answer.status_code, only_gate(tenant).newest) == (409, 2)


def test_history_is_shown(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words"), note="Because of cards").gate
    assert "Because of cards" in keeper.get(page_of(Gate, "change", gate.pk)).content.decode()


def test_gate_cannot_be_deleted_even_by_a_superuser(root: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words"))
    assert root.post(page_of(Gate, "delete", gate.pk), {"post": "yes"}).status_code == 403


def test_chosen_gates_are_retired_and_put_in_force(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words"))
    seen = []
    for action in ("retire", "put_in_force"):
        keeper.post(page_of(Gate, "changelist"), {"action": action, "_selected_action": [str(gate.pk)], "post": "yes"})
        seen.append(only_gate(tenant).status)
    assert seen == ["retired", "active"]


def tried(browser: Client, gate: Gate, **data: Any) -> Any:
    return browser.post(reverse("admin:gates_gate_try", args=[gate.pk]), data)


def _draft_that_blocks(deployment: Any) -> Gate:
    say(make_session(deployment), "I want a <b>refund</b>")
    with tenant_scope(deployment.tenant_id):
        draft = spec("words", config={"pattern": r"\A(?!.*refund)"})
        return write_version(draft, deployment_id=deployment.pk).gate


@pytest.mark.parametrize("who", ["root", "keeper"])
def test_draft_is_tried_on_recorded_messages(who: str, deployment: Any, request: pytest.FixtureRequest) -> None:
    page = tried(request.getfixturevalue(who), _draft_that_blocks(deployment)).content.decode()
    assert "1 would have a different result" in page and "&lt;b&gt;refund" in page


def test_gate_for_all_is_tried_where_it_was_asked(keeper: Client, tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words")).gate
    assert tried(keeper, gate).status_code == 400
    assert tried(keeper, gate, _trial_deployment=str(deployment.pk)).status_code == 200


def test_button_that_tries_is_on_the_page(keeper: Client, deployment: Any) -> None:
    gate = _draft_that_blocks(deployment)
    assert (
        reverse("admin:gates_gate_try", args=[gate.pk]) in keeper.get(page_of(Gate, "change", gate.pk)).content.decode()
    )


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_others_try_nothing(who: str, deployment: Any, request: pytest.FixtureRequest) -> None:
    gate = _draft_that_blocks(deployment)
    assert tried(browser_of(request.getfixturevalue(who)), gate).status_code == 403


def test_owner_of_another_tenant_finds_no_gate_to_try(other_tenant: Any, deployment: Any) -> None:
    gate = _draft_that_blocks(deployment)
    assert tried(browser_of(make_member(other_tenant, "owner")), gate).status_code == 404


def test_trying_without_login_leads_to_it(deployment: Any) -> None:
    assert tried(Client(), _draft_that_blocks(deployment)).status_code == 302


def test_trying_by_get_is_not_allowed(keeper: Client, deployment: Any) -> None:
    gate = _draft_that_blocks(deployment)
    assert keeper.get(reverse("admin:gates_gate_try", args=[gate.pk])).status_code == 405
