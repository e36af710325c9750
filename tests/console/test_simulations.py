"""The page of simulations: make a suite, start it, read what came of it; each only for whom it is for."""

from __future__ import annotations

import asyncio
from typing import Any

from django.urls import reverse

from apps.simulations.enums import Player, RunStatus
from apps.simulations.models import SimulationRun, SimulationSuite
from apps.simulations.services import run_simulation
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.simulations import HELLO, make_suite, simulated
from tests.factories.tenants import make_deployment, make_member, make_tenant


def test_owner_makes_a_suite_and_starts_it_once(tenant: Any, deployment: Any, owner: Any) -> None:
    mine = browser(owner)
    made = mine.post(reverse("console-simulation-make"), {"chatbot": str(deployment.pk), "origin": "attacks"})
    assert made.status_code == 302
    with tenant_scope(tenant):
        suite = SimulationSuite.objects.get()
    first = mine.post(reverse("console-simulation-start", args=[suite.pk]), {"budget": "2.50"})
    again = mine.post(reverse("console-simulation-start", args=[suite.pk]))
    with tenant_scope(tenant):
        run = SimulationRun.objects.get()
    assert first.headers["Location"] == again.headers["Location"] == reverse("console-simulation", args=[run.pk])
    assert str(run.budget_usd) == "2.500000"
    assert mine.post(reverse("console-simulation-stop", args=[run.pk])).status_code == 302
    with tenant_scope(tenant):
        run.refresh_from_db()
    assert run.status == RunStatus.STOPPED
    assert "Stopped by a person" in mine.get(reverse("console-simulation", args=[run.pk])).content.decode()
    assert mine.post(reverse("console-simulation-resume", args=[run.pk])).status_code == 302
    with tenant_scope(tenant):
        run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_owner_describes_a_visitor(tenant: Any, deployment: Any, owner: Any) -> None:
    sent = {"visitor-name": "In a hurry", "visitor-goal": "Learn the hours.", "visitor-persona": "Grace"}
    place, mine = reverse("console-simulation-visitor", args=[deployment.pk]), browser(owner)
    incomplete = mine.post(place, sent)
    assert incomplete.status_code == 422
    assert "has no model that can play the visitor" in incomplete.content.decode()
    whole = {**sent, "visitor-lines": "Hello\r\nWhen do you open?", "visitor-says": "eight\r\n\r\nsix"}
    assert mine.post(place, whole).status_code == 302
    with tenant_scope(tenant):
        scenario = SimulationSuite.objects.get(name="Visitors").scenarios.get()
    assert scenario.player == Player.MODEL
    assert [line["say"] for line in scenario.lines] == ["Hello", "When do you open?"]
    assert scenario.checks == [{"kind": "says", "words": ["eight", "six"]}]
    assert browser(make_member(make_tenant(), "owner")).post(place, whole).status_code == 404


def test_budget_that_is_no_amount_is_refused(deployment: Any, owner: Any) -> None:
    suite = make_suite(deployment)
    for wrong in ("much", "-1", "NaN", "1e9"):
        answer = browser(owner).post(reverse("console-simulation-start", args=[suite.pk]), {"budget": wrong})
        assert answer.status_code == 422
    with tenant_scope(deployment.tenant_id):
        assert not SimulationRun.objects.exists()


def test_report_shows_what_failed_what_changed_and_hostile_words_as_text(deployment: Any, owner: Any) -> None:
    name = "<script>alert(1)</script>"
    asyncio.run(simulated(deployment, make_suite(deployment, **{name: HELLO})))
    wrong = {**HELLO, "checks": [{"kind": "says", "words": ["<b>never</b>"]}]}
    run = asyncio.run(simulated(deployment, make_suite(deployment, **{name: wrong})))
    shown = browser(owner).get(reverse("console-simulation", args=[run.pk])).content.decode()
    assert "fails now" in shown
    assert "&lt;b&gt;never" in shown
    assert name not in shown
    assert "hx-trigger" not in shown.partition('id="simulation"')[2].partition(">")[0]
    listed = browser(owner).get(reverse("console-simulations")).content.decode()
    assert "0 of 1" in listed


def test_foreign_suite_run_and_chatbot_are_not_found(deployment: Any, other_tenant: Any) -> None:
    suite = make_suite(deployment)
    with tenant_scope(deployment.tenant_id):
        run = run_simulation(deployment, suite)
    make_deployment(other_tenant)
    theirs = browser(make_member(other_tenant, "owner"))
    assert theirs.get(reverse("console-simulation", args=[run.pk])).status_code == 404
    assert theirs.post(reverse("console-simulation-stop", args=[run.pk])).status_code == 404
    assert theirs.post(reverse("console-simulation-resume", args=[run.pk])).status_code == 404
    assert theirs.post(reverse("console-simulation-start", args=[suite.pk])).status_code == 404
    assert theirs.get(reverse("console-simulations"), {"chatbot": str(deployment.pk)}).status_code == 404


def test_company_without_a_chatbot_sees_an_empty_page(owner: Any) -> None:
    assert browser(owner).get(reverse("console-simulations")).status_code == 200
