"""The gallery: ten templates, each of which becomes an ordinary task once."""

from __future__ import annotations

from typing import Any

import pytest

from apps.autonomy.builtin_workflows import WORKFLOWS
from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.models import Trigger
from apps.autonomy.services.gallery_use import use_template
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import House
from tests.factories.tenants import make_deployment, make_member


def test_ten_templates_each_with_a_workflow() -> None:
    assert len({template.key for template in TEMPLATES}) == 10
    assert {template.key for template in TEMPLATES} <= WORKFLOWS.keys()


@pytest.mark.parametrize("key", [template.key for template in TEMPLATES])
def test_template_becomes_a_task_with_its_trigger_once(house: House, key: str) -> None:
    first = house.do(use_template, key, user=house.owner, deployment_id=house.deployment.pk)
    again = house.do(use_template, key, user=house.owner, deployment_id=house.deployment.pk)
    assert first.pk == again.pk
    with tenant_scope(house.tenant):
        assert Trigger.objects.filter(task=first, enabled=True).exclude(next_at=None).count() == 1


def test_second_chatbot_gets_a_task_of_its_own(house: House) -> None:
    second = make_deployment(house.tenant)
    tasks = [
        house.do(use_template, "promises", user=house.owner, deployment_id=pk.pk) for pk in (house.deployment, second)
    ]
    assert len({task.pk for task in tasks}) == 2


def test_unknown_template_and_foreign_chatbot_are_not_found(house: House, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    for key, deployment in (("goal", house.deployment), ("nonsense", house.deployment), ("promises", foreign)):
        with pytest.raises(NotFound):
            house.do(use_template, key, user=house.owner, deployment_id=deployment.pk)


def test_member_who_may_not_set_up_or_has_not_opted_in_uses_none(house: House) -> None:
    for role, code in (("agent", "forbidden_role"), ("approver", "not_opted_in")):
        with pytest.raises(SilasError) as refused:
            house.do(use_template, "promises", user=make_member(house.tenant, role), deployment_id=house.deployment.pk)
        assert refused.value.code == code
