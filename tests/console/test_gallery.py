"""The gallery of automations in the console: two presses to a run with its receipt, and findings that are resolved."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.models import AutonomousSession, Task
from kernel.tenancy import tenant_scope
from tests.console.runs import post, text
from tests.factories.autonomy import House, make_house
from tests.factories.console import browser
from tests.factories.months import make_month
from tests.factories.tenants import make_deployment, make_member


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


def use(house: House, user: Any, key: str, **more: Any) -> Any:
    return browser(user).post(reverse("console-gallery-use", args=[key]), {"chatbot": str(house.deployment.pk), **more})


def test_gallery_shows_ten_templates_to_every_member(house: House, viewer: Any) -> None:
    shown = text(viewer, "console-gallery")
    assert all(f"template-{template.key}" in shown for template in TEMPLATES)
    assert "Add and run now" not in shown
    assert "Add and run now" in text(house.owner, "console-gallery")


def test_use_adds_the_automation_and_runs_it(tenant: Any) -> None:
    house = make_month(tenant)
    answer = use(house, house.owner, "refund_anomalies")
    house.finish()
    with tenant_scope(tenant):
        session = AutonomousSession.objects.get()
    assert answer.headers["Location"] == reverse("console-run", args=[session.pk])
    assert session.status == "completed"
    assert "3 open findings" in text(house.owner, "console-gallery")
    assert "View receipt" in text(house.owner, "console-gallery")


def test_pressed_twice_makes_one_automation(house: House) -> None:
    once = "0b7e0a0e-5f0e-4d43-8f0e-2f1f6a3d9c11"
    places = {use(house, house.owner, "promises", once=once).headers["Location"] for _ in range(2)}
    with tenant_scope(house.tenant):
        assert Task.objects.count() == 1
    assert len(places) == 1


def test_foreign_chatbot_and_unknown_template_are_not_found(house: House, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    assert use(house, house.owner, "promises", chatbot=str(foreign.pk)).status_code == 404
    assert use(house, house.owner, "promises", chatbot="x").status_code == 404
    assert use(house, house.owner, "nonsense").status_code == 404


def test_finding_is_resolved_on_the_page_of_its_automation(tenant: Any) -> None:
    house = make_month(tenant)
    use(house, house.owner, "sla_risk")
    house.finish()
    (finding,) = house.findings()
    assert "Mark as resolved" in text(house.agent, "console-task", finding.task_id)
    assert post(house.agent, "console-finding-resolve", finding.pk).status_code == 302
    shown = text(house.agent, "console-task", finding.task_id)
    assert "Mark as resolved" not in shown
    assert "Earlier findings" in shown
    stranger = make_member(tenant, "viewer")
    assert post(stranger, "console-finding-resolve", finding.pk).status_code == 403
