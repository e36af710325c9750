"""Spending: costs and limits, for the roles that may see them, and the warning in the rail."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from apps.console.charts import HEIGHT, columns
from apps.console.templatetags.console import usd
from apps.guard import services
from apps.guard.enums import Intent, Origin
from apps.guard.models import Budget, SpendingPolicy
from apps.guard.schemas import Admitted, Limits
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import make_house
from tests.factories.console import browser
from tests.factories.guard import make_budget, make_call, make_run
from tests.factories.tenants import make_deployment


def spend(tenant: Any, amount: str, *, model: str = "openai:gpt-4o-mini", purpose: str = "proxy", **run: Any) -> None:
    asked = make_call(tool=purpose, model=model, estimate=Decimal(amount))
    opened = make_run(tenant, **run)
    with tenant_scope(tenant):
        call = services.admit(opened.ref, Intent.CONVERSE, asked)
        assert isinstance(call, Admitted)
        services.settle(call, cost=Decimal(amount))


def page(user: Any, **asked: str) -> str:
    return str(browser(user).get(reverse("console-spending"), asked).content.decode())


def text(found: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", found)).replace("\N{NO-BREAK SPACE}", " ")


def rail(user: Any) -> str:
    return str(browser(user).get(reverse("console-rail")).content.decode())


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("0", "$0.00"),
        ("0.5", "$0.50"),
        ("0.0042", "$0.0042"),
        ("0.000000003", "$0.000000003"),
        ("1234.5678", "$1,234.57"),
        ("0.123456", "$0.12"),
    ],
)
def test_amount_keeps_the_digits_that_count(amount: str, said: str) -> None:
    assert usd(Decimal(amount)) == said


def test_columns_of_small_amounts_fill_the_drawing() -> None:
    drawn = columns(["a"], [0.002], least=0.002, text_of=usd)
    assert drawn.bars[0].height > HEIGHT / 2
    assert drawn.bars[0].text == "$0.002"


def test_page_without_spend_says_so(owner: Any) -> None:
    found = text(page(owner))
    assert "No limit is set" in found
    assert "No spending in this period" in found


def test_page_says_what_was_spent_by_chatbot_model_and_purpose(tenant: Any, owner: Any) -> None:
    desk = make_deployment(tenant, title="Front desk")
    spend(tenant, "0.75", deployment_id=desk.pk)
    spend(tenant, "0.25", model="anthropic:claude", purpose="planner")
    found = text(page(owner))
    told = ["Front desk $0.75", "openai:gpt-4o-mini $0.75", "answering visitors $0.75", "anthropic:claude $0.25"]
    assert [line for line in [*told, "planning $0.25", "$1.00 in 7 days"] if line not in found] == []


def test_page_shows_each_limit_and_what_is_left(tenant: Any, owner: Any) -> None:
    make_budget(tenant, "2")
    spend(tenant, "0.5")
    assert "The company, today 25 % $2.00 $0.50 $0.00 $1.50" in text(page(owner))


def test_page_shows_what_goes_on_with_its_own_cap(tenant: Any, owner: Any) -> None:
    spend(tenant, "0.5", limits=Limits(cost_usd=Decimal(2)))
    assert re.search(r"A conversation 25 % now 1 \$0\.50 \$2\.00", text(page(owner)))


def test_unattended_work_is_named_and_leads_to_its_run(tenant: Any) -> None:
    house = make_house(tenant)
    task = house.task(name="Nightly look")
    session = house.run_now(task)
    make_budget(tenant, "3", task_ref=task.pk)
    make_run(tenant, origin=Origin.BACKGROUND, owner_ref=session.pk, limits=Limits(cost_usd=Decimal(2)))
    found = page(house.owner)
    assert "Nightly look, today" in text(found)
    assert f'href="{reverse("console-run", args=[session.pk])}"' in found


def test_page_shows_nothing_of_another_tenant(other_tenant: Any, owner: Any) -> None:
    make_budget(other_tenant, "77")
    spend(other_tenant, "66", limits=Limits(cost_usd=Decimal(88)))
    found = page(owner)
    assert [amount for amount in ("77", "66", "88") if f"${amount}." in found] == []


def test_visitors_own_budgets_are_not_listed(tenant: Any, owner: Any) -> None:
    make_budget(tenant, "3", visitor_ref=owner.pk)
    assert "No limit is set" in text(page(owner))


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("approver", 200), ("agent", 403), ("viewer", 403)])
def test_page_is_for_those_who_decide(request: pytest.FixtureRequest, role: str, status: int) -> None:
    user = request.getfixturevalue(role)
    assert browser(user).get(reverse("console-spending")).status_code == status


@pytest.mark.parametrize("days", ["7", "30", "90", "-1", "1e9", "x"])
def test_page_answers_for_any_span(owner: Any, days: str) -> None:
    assert "Spending per day" in page(owner, days=days)


def test_number_of_queries_does_not_grow_with_what_was_spent(
    tenant: Any, owner: Any, django_assert_max_num_queries: Any
) -> None:
    client = browser(owner)
    make_budget(tenant, "99")
    spend(tenant, "0.1", limits=Limits(cost_usd=Decimal(2)))
    with django_assert_max_num_queries(99) as first:
        client.get(reverse("console-spending"))
    for number in range(3):
        spend(tenant, "0.1", model=f"openai:{number}", limits=Limits(cost_usd=Decimal(2)))
        make_budget(tenant, "99", deployment=make_deployment(tenant))
    with django_assert_max_num_queries(len(first)):
        client.get(reverse("console-spending"))


# A reached limit


SAID = {
    "pause_all": "answered without a paid model",
    "pause_non_critical": "not critical waits",
    "alert_only": "Nothing was stopped",
}


@pytest.mark.parametrize("wanted", SAID)
def test_reached_limit_is_said_with_what_it_stops(tenant: Any, owner: Any, wanted: str) -> None:
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(on_limit=wanted)
    make_budget(tenant, "1")
    spend(tenant, "1")
    assert SAID[wanted] in text(page(owner))


def test_owner_lets_waiting_work_go_on(tenant: Any, owner: Any) -> None:
    make_budget(tenant, "1")
    spend(tenant, "1")
    browser(owner).post(reverse("console-spending-resume"))
    assert "Limit reached" not in text(page(owner))


def test_approver_cannot_let_waiting_work_go_on(tenant: Any, approver: Any) -> None:
    make_budget(tenant, "1")
    spend(tenant, "1")
    assert browser(approver).post(reverse("console-spending-resume")).status_code == 403


def test_stranger_changes_nothing(tenant: Any, owner: Any, stranger: Any) -> None:
    make_budget(tenant, "1")
    spend(tenant, "1")
    browser(stranger).post(reverse("console-spending-resume"))
    assert "Limit reached" in text(page(owner))


@pytest.mark.parametrize(
    ("amount", "said"),
    [("0.4", ""), ("0.85", '80%</span><span class="hidden"> of a limit is used'), ("1", "a limit is reached")],
)
def test_rail_says_when_money_runs_out(tenant: Any, approver: Any, amount: str, said: str) -> None:
    make_budget(tenant, "1")
    spend(tenant, amount)
    found = rail(approver)
    assert ("rail-spending" in found) == bool(said)
    assert said in found


def test_rail_says_nothing_of_money_to_those_who_do_not_decide(tenant: Any, viewer: Any) -> None:
    make_budget(tenant, "1")
    spend(tenant, "1")
    assert "rail-spending" not in rail(viewer)


def set_limit(user: Any, **fields: str) -> Any:
    asked = {"whose": "company", "period": "day", "limit_usd": "20", **fields}
    return browser(user).post(reverse("console-limit-save"), asked)


def limits(tenant: Any) -> list[tuple[str, Any, Decimal | None]]:
    with tenant_scope(tenant):
        return list(Budget.objects.order_by("period").values_list("period", "deployment_id", "limit_usd"))


def test_owner_sets_changes_and_removes_the_companys_limit(tenant: Any, owner: Any) -> None:
    assert set_limit(owner).status_code == 302
    assert limits(tenant) == [("day", None, Decimal(20))]
    set_limit(owner, limit_usd="30.50")
    assert limits(tenant) == [("day", None, Decimal("30.5"))]
    with tenant_scope(tenant):
        budget = Budget.objects.get()
    assert reverse("console-limit-remove", args=[budget.pk]) in page(owner)
    browser(owner).post(reverse("console-limit-remove", args=[budget.pk]))
    assert limits(tenant) == []


def test_owner_limits_one_chatbot(tenant: Any, owner: Any) -> None:
    place = make_deployment(tenant)
    set_limit(owner, whose=str(place.pk), period="month")
    assert limits(tenant) == [("month", place.pk, Decimal(20))]


@pytest.mark.parametrize(
    "fields", [{"limit_usd": "-1"}, {"limit_usd": "NaN"}, {"period": "year"}, {"whose": "x"}, {"limit_usd": "1e30"}]
)
def test_wrong_limit_is_said_at_its_field_and_nothing_is_saved(tenant: Any, owner: Any, fields: dict[str, str]) -> None:
    answer = set_limit(owner, **fields)
    assert answer.status_code == 422
    assert "Nothing was saved" in answer.content.decode()
    assert limits(tenant) == []


def test_limit_of_another_company_is_neither_set_nor_removed(tenant: Any, other_tenant: Any, owner: Any) -> None:
    theirs = make_deployment(other_tenant)
    assert set_limit(owner, whose=str(theirs.pk)).status_code == 422
    budget = make_budget(other_tenant, "5")
    assert browser(owner).post(reverse("console-limit-remove", args=[budget.pk])).status_code == 404
    assert len(limits(other_tenant)) == 1


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_others_set_no_limit_and_see_no_form(tenant: Any, role: str, request: Any) -> None:
    user = request.getfixturevalue(role)
    assert set_limit(user).status_code == 403
    assert limits(tenant) == []
    assert reverse("console-limit-save") not in page(user)
