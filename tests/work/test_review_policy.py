"""An owner sets confidence thresholds and batch size in the admin, within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.work.models import ReviewPolicy
from apps.work.queries import thresholds_of
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.tenants import make_deployment

ADD = "admin:work_reviewpolicy_add"


def save(user: Any, deployment: Any, **values: str) -> str:
    return str(browser(user).post(reverse(ADD), {"deployment": deployment.pk, **values}).content.decode())


def saved(tenant: Any) -> list[ReviewPolicy]:
    with tenant_scope(tenant):
        return list(ReviewPolicy.objects.all())


def test_owner_sets_how_large_a_batch_is(tenant: Any, deployment: Any, owner: Any) -> None:
    save(owner, deployment, default_size="25")
    with tenant_scope(tenant):
        assert thresholds_of(deployment.pk).size == 25


def test_what_is_left_blank_is_as_the_house_says(tenant: Any, deployment: Any, owner: Any) -> None:
    save(owner, deployment, high_min="0.95")
    with tenant_scope(tenant):
        found = thresholds_of(deployment.pk)
    assert found.high_min == 0.95
    assert found.medium_min == 0.5
    assert found.size == 10


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"default_size": "0"}, "1 to 50"),
        ({"default_size": "51"}, "1 to 50"),
        ({"high_min": "1.1"}, "between 0 and 1"),
        ({"medium_min": "-0.1"}, "between 0 and 1"),
        ({"high_min": "nan"}, "number"),
        ({"high_min": "0.6", "medium_min": "0.7"}, "not be above"),
        ({"high_min": "0.4"}, "not be above"),
        ({"medium_min": "0.9"}, "not be above"),
    ],
)
def test_policy_that_makes_no_sense_is_refused_in_words(
    tenant: Any, deployment: Any, owner: Any, values: dict[str, str], problem: str
) -> None:
    page = save(owner, deployment, **values)
    assert problem in page
    assert "Constraint" not in page
    assert saved(tenant) == []


def test_second_policy_of_a_deployment_is_refused(tenant: Any, deployment: Any, owner: Any) -> None:
    save(owner, deployment, default_size="5")
    assert "already exists" in save(owner, deployment, default_size="6")


def test_policy_of_a_foreign_deployment_is_refused(tenant: Any, other_tenant: Any, owner: Any) -> None:
    assert "Select a valid choice" in save(owner, make_deployment(other_tenant), default_size="5")


def test_approver_sets_nothing(tenant: Any, deployment: Any, owner: Any, approver: Any) -> None:
    save(approver, deployment, default_size="5")
    assert saved(tenant) == []


def test_change_is_written_down(tenant: Any, deployment: Any, owner: Any) -> None:
    save(owner, deployment, default_size="5")
    (row,) = saved(tenant)
    address = reverse("admin:work_reviewpolicy_change", args=[row.pk])
    browser(owner).post(address, {"deployment": deployment.pk, "default_size": "6"})
    with tenant_scope(tenant):
        entry = AuditEntry.objects.order_by("seq").last()
    assert entry.event == "admin_changed"
    assert json.loads(entry.data)["fields"] == ["default_size"]


def test_every_field_says_what_it_means(owner: Any) -> None:
    form = browser(owner).get(reverse(ADD)).context["adminform"].form
    assert [field.name for field in form if not field.help_text] == []
