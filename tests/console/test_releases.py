"""The page of releases: publish, compare, share, simulate, roll back."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from apps.releases import queries
from apps.simulations.models import SimulationRun
from apps.simulations.services import save_scenario, save_suite
from apps.tenants.models import Deployment
from apps.tenants.services import change_deployment
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import answered
from tests.factories.tenants import make_member


def edit(deployment: Deployment, **changes: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        change_deployment(Deployment.objects.get(pk=deployment.pk), actor="user:1", **changes)


def text_of(owner: Any, deployment: Deployment) -> str:
    return str(browser(owner).get(reverse("console-releases", args=[deployment.pk])).content.decode())


def sent(owner: Any, name: str, *args: Any, **fields: Any) -> int:
    return int(browser(owner).post(reverse(name, args=args), fields).status_code)


def numbers(deployment: Deployment) -> dict[int, tuple[str, int]]:
    with tenant_scope(deployment.tenant_id):
        return {row.number: (row.status, row.share) for row in queries.releases_of(deployment.pk)}


def seen(owner: Any, deployment: Deployment) -> str:
    return text_of(owner, deployment).partition('name="sha256" value="')[2][:64]


def test_owner_publishes_tries_and_rolls_back(tenant: Any, owner: Any, deployment: Deployment) -> None:
    assert "No releases yet" in text_of(owner, deployment)
    at = deployment.pk
    assert sent(owner, "console-release-publish", at, sha256=seen(owner, deployment), share=100) == 302
    assert "Everything is published" in text_of(owner, deployment)
    edit(deployment, persona="Be <b>brief</b>.")
    page = text_of(owner, deployment)
    assert "Changed since release 1" in page
    assert "Be &lt;b&gt;brief&lt;/b&gt;." in page
    assert sent(owner, "console-release-publish", at, sha256=seen(owner, deployment), share=30) == 302
    assert sent(owner, "console-release-share", at, 2, share=60) == 302
    assert numbers(deployment) == {2: ("live", 60), 1: ("live", 40)}
    assert sent(owner, "console-release-roll-back", at, 1, newest=2) == 302
    assert numbers(deployment) == {3: ("live", 100), 2: ("withdrawn", 0), 1: ("withdrawn", 0)}
    assert browser(owner).get(reverse("console-release", args=[at, 2])).status_code == 200


@pytest.mark.parametrize(
    ("name", "more", "fields", "status"),
    [
        ("console-release-publish", (), {"share": "all"}, 422),
        ("console-release-publish", (), {"share": "100", "sha256": "0" * 64}, 409),
        ("console-release-share", (1,), {"share": "50"}, 409),
        ("console-release-roll-back", (1,), {"newest": "1"}, 404),
        ("console-release-rule", (), {"rule": "perhaps"}, 422),
        ("console-release-simulate", (), {"sha256": "", "suite": ""}, 409),
    ],
)
def test_bad_form_is_refused(
    owner: Any, deployment: Deployment, name: str, more: Any, fields: Any, status: int
) -> None:
    assert sent(owner, name, deployment.pk, *more, **fields) == status
    assert numbers(deployment) == {}


def test_required_simulation_asks_for_a_reason(owner: Any, deployment: Deployment) -> None:
    sent(owner, "console-release-rule", deployment.pk, rule="require")
    assert "Reason to publish without a passed simulation" in text_of(owner, deployment)
    assert sent(owner, "console-release-publish", deployment.pk, sha256=seen(owner, deployment), share=100) == 409
    reason = {"reason": "The phone number is wrong"}
    assert (
        sent(owner, "console-release-publish", deployment.pk, sha256=seen(owner, deployment), share=100, **reason)
        == 302
    )


def test_simulation_runs_against_exactly_what_would_be_published(
    tenant: Any, owner: Any, deployment: Deployment
) -> None:
    edit(deployment, persona="Be brief.")
    with tenant_scope(tenant):
        suite = save_suite(deployment, "Basics")
        save_scenario(suite, "Hours", lines=[{"say": "When do you open?"}], checks=[])
    wanted = seen(owner, deployment)
    assert sent(owner, "console-release-simulate", deployment.pk, sha256=wanted, suite=str(suite.pk)) == 302
    with tenant_scope(tenant):
        run = SimulationRun.objects.get()
    assert run.snapshot == wanted
    assert run.overrides["persona"] == "Be brief."


def test_answers_and_figures_name_the_release(tenant: Any, owner: Any, deployment: Deployment) -> None:
    sent(owner, "console-release-publish", deployment.pk, share=100)
    session = async_to_sync(answered)(deployment, "What is my excess?")
    thread = browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert "release 1" in thread
    trace = browser(owner).get(reverse("console-seen", args=[session.pk, 1])).content.decode()
    assert "<dt>Release</dt><dd>1</dd>" in trace
    assert '<th scope="row">1</th><td>1</td>' in text_of(owner, deployment)


def test_studio_says_which_release_visitors_get(owner: Any, deployment: Deployment) -> None:
    studio = reverse("console-studio", args=[deployment.pk])
    assert "Visitors get release" not in browser(owner).get(studio).content.decode()
    sent(owner, "console-release-publish", deployment.pk, share=100)
    assert "Visitors get release 1" in browser(owner).get(studio).content.decode()


def test_foreign_chatbot_has_no_page(other_tenant: Any, deployment: Deployment) -> None:
    stranger = make_member(other_tenant, "owner")
    assert browser(stranger).get(reverse("console-releases", args=[deployment.pk])).status_code == 404
    assert sent(stranger, "console-release-publish", deployment.pk, share=100) == 404
    assert numbers(deployment) == {}
