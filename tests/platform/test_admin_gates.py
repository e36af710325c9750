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


@pytest.fixture
def gate(tenant: Any) -> Gate:
    with tenant_scope(tenant):
        return save_gate(spec("words"))


def only_gate(tenant: Any) -> Gate:
    with tenant_scope(tenant):
        gate: Gate = Gate.objects.get()
        return gate


def test_owner_adds_a_gate_as_a_draft(keeper: Client, tenant: Any) -> None:
    keeper.post(page_of(Gate, "add"), filled(note="First try"))
    gate = only_gate(tenant)
    with tenant_scope(tenant):
        assert gate.status == "draft"
        assert [version.note for version in versions_of(gate)] == ["First try"]


def test_superuser_adds_a_gate_to_the_tenant_they_name(root: Client, tenant: Any) -> None:
    root.post(page_of(Gate, "add"), filled(tenant=tenant.pk))
    assert only_gate(tenant).name == "words"


def test_broken_gate_is_refused_with_the_reason(keeper: Client, tenant: Any) -> None:
    page = keeper.post(page_of(Gate, "add"), filled(config='{"pattern": "("}')).content.decode()
    with tenant_scope(tenant):
        assert "ot a regular expression" in page and not Gate.objects.exists()


def test_save_writes_another_version_and_leaves_what_is_in_force_and_the_name(
    keeper: Client, tenant: Any, deployment: Any, gate: Gate
) -> None:
    keeper.post(page_of(Gate, "change", gate.pk), filled(name="other", config='{"pattern": "x"}', seen=1))
    with tenant_scope(tenant):
        found = [one.config["pattern"] for one in active_gates(deployment.pk).value]
    now = only_gate(tenant)
    assert found == ["."]
    assert now.draft == 2
    assert now.newest == 2
    assert now.name == "words"


def test_save_and_put_in_force_does_both(keeper: Client, tenant: Any, gate: Gate) -> None:
    data = filled(config='{"pattern": "x"}', seen=1, _put_in_force="on")
    keeper.post(page_of(Gate, "change", gate.pk), data)
    assert only_gate(tenant).active == 2


def test_form_that_is_out_of_date_stores_nothing(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words")).gate
        write_version(spec("words", on_block="other"))
    answer = keeper.post(page_of(Gate, "change", gate.pk), filled(config='{"pattern": "x"}', seen=1))
    assert answer.status_code == 409
    assert only_gate(tenant).newest == 2


def test_history_is_shown(keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words"), note="Because of cards").gate
    assert "Because of cards" in keeper.get(page_of(Gate, "change", gate.pk)).content.decode()


def test_gate_cannot_be_deleted_even_by_a_superuser(root: Client, gate: Gate) -> None:
    assert root.post(page_of(Gate, "delete", gate.pk), {"post": "yes"}).status_code == 403


def test_chosen_gates_are_retired_and_put_in_force(keeper: Client, tenant: Any, gate: Gate) -> None:
    for action, status in (("retire", "retired"), ("put_in_force", "active")):
        keeper.post(page_of(Gate, "changelist"), {"action": action, "_selected_action": [str(gate.pk)], "post": "yes"})
        assert only_gate(tenant).status == status


def tried(browser: Client, gate: Gate, **data: Any) -> Any:
    return browser.post(reverse("admin:gates_gate_try", args=[gate.pk]), data)


def test_gate_for_all_is_tried_where_it_was_asked(keeper: Client, tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(spec("words")).gate
    assert tried(keeper, gate).status_code == 400
    assert tried(keeper, gate, _trial_deployment=str(deployment.pk)).status_code == 200


@pytest.fixture
def draft(deployment: Any) -> Gate:
    """Blocks what a recorded message says."""
    say(make_session(deployment), "I want a <b>refund</b>")
    with tenant_scope(deployment.tenant_id):
        blocking = spec("words", config={"pattern": r"\A(?!.*refund)"})
        return write_version(blocking, deployment_id=deployment.pk).gate


@pytest.mark.parametrize("who", ["root", "keeper"])
def test_draft_is_tried_on_recorded_messages(who: str, draft: Gate, request: pytest.FixtureRequest) -> None:
    page = tried(request.getfixturevalue(who), draft).content.decode()
    assert "1 would have a different result" in page
    assert "&lt;b&gt;refund" in page


def test_button_that_tries_is_on_the_page_and_posts(keeper: Client, draft: Gate) -> None:
    where = reverse("admin:gates_gate_try", args=[draft.pk])
    assert where in keeper.get(page_of(Gate, "change", draft.pk)).content.decode()
    assert keeper.get(where).status_code == 405


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_others_try_nothing(who: str, draft: Gate, request: pytest.FixtureRequest) -> None:
    assert tried(browser_of(request.getfixturevalue(who)), draft).status_code == 403


def test_owner_of_another_tenant_finds_no_gate_to_try_and_nobody_is_led_to_the_login(
    other_tenant: Any, draft: Gate
) -> None:
    assert tried(browser_of(make_member(other_tenant, "owner")), draft).status_code == 404
    assert tried(Client(), draft).status_code == 302
