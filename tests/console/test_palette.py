"""The command palette finds pages and objects that the member may open, of their own tenant only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.approvals.cards.services import decide_card
from apps.console.members import Member
from apps.console.navigation import PAGES, SETTINGS, SettingsPage, settings_page
from apps.console.pages.palette.search import Group, Hit, search
from apps.gates.services import save_gate
from apps.sessions import pseudonyms
from apps.sessions.models import ChatSession
from apps.tenants.enums import Role
from apps.tenants.models import User
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import make_house
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.factories.work import make_desk
from tests.gates.test_rows import spec

NASTY = "<img src=x onerror=alert(1)>"


def _typed(user: Any, said: str) -> str:
    return str(browser(user).get(reverse("console-palette"), {"q": said}).content.decode())


def _contact(tenant: Any, name: str = "Maria Ortega", **fields: Any) -> ChatSession:
    session = make_session(make_deployment(tenant))
    say(session, "Hello")
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(customer_name=name, **fields)
    return session


def _gate(tenant: Any) -> Any:
    with tenant_scope(tenant):
        return save_gate(spec("refund_limit"))


def _hits(tenant: Any, user: Any, said: str, group: str) -> list[Hit]:
    with tenant_scope(tenant):
        groups: list[Group] = search(Member(user, tenant, Role.OWNER, ()), said)
    return next((one.hits for one in groups if one.title == group), [])


def test_contact_of_another_tenant_is_never_found(tenant: Any, other_tenant: Any) -> None:
    _contact(tenant)
    assert 'class="group"' not in _typed(make_member(other_tenant, "owner"), "ortega")


@pytest.mark.parametrize("said", ["postal", "refund_limit", "tea time"])
def test_things_of_another_tenant_are_never_found(tenant: Any, other_tenant: Any, tmp_path: Path, said: str) -> None:
    make_card(tenant)
    _gate(tenant)
    make_house(tenant).task(name="Tea time")
    make_desk(tenant, tmp_path).waiting()
    assert 'class="group"' not in _typed(make_member(other_tenant, "owner"), said)


def test_member_of_another_tenant_is_never_found(tenant: Any, other_tenant: Any, owner: Any) -> None:
    stranger = make_member(other_tenant, "agent")
    assert 'class="group"' not in _typed(owner, stranger.email)


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
@pytest.mark.parametrize("said", ["refund_limit", "Zelda"])
def test_gates_and_members_are_found_by_owners_only(tenant: Any, said: str, role: str, request: Any) -> None:
    _gate(tenant)
    User.objects.filter(pk=make_member(tenant, "agent").pk).update(first_name="Zelda")
    assert 'class="group"' not in _typed(request.getfixturevalue(role), said)


@pytest.mark.parametrize("said", ["refund limit", "REFUND", "refund_limit"])
def test_owner_finds_a_gate(tenant: Any, owner: Any, said: str) -> None:
    gate = _gate(tenant)
    assert f'href="{reverse("console-gate", args=[gate.pk])}"' in _typed(owner, said)


def test_owner_finds_a_member_by_name(tenant: Any, owner: Any) -> None:
    User.objects.filter(pk=make_member(tenant, "agent").pk).update(first_name="Zelda", last_name="Abara")
    assert "Zelda Abara" in _typed(owner, "abara zel")


@pytest.mark.parametrize("role", ["owner", "approver", "agent", "viewer"])
def test_every_page_that_is_offered_opens(tenant: Any, role: str, request: Any) -> None:
    user = request.getfixturevalue(role)
    offered = [place for place in PAGES if role in place.roles]
    assert [browser(user).get(place.address).status_code for place in offered] == [200] * len(offered)


@pytest.mark.parametrize("role", ["owner", "approver", "agent", "viewer"])
def test_page_that_is_not_offered_is_refused(tenant: Any, role: str, request: Any) -> None:
    user = request.getfixturevalue(role)
    others = [place for place in PAGES if role not in place.roles]
    assert [browser(user).get(place.address).status_code for place in others] == [403] * len(others)


@pytest.mark.parametrize("said", ["act", "audit", "ACTIVITY", "  audit  log "])
def test_page_is_found_by_its_name_and_by_other_words(owner: Any, said: str) -> None:
    assert 'href="/console/activity/"' in _typed(owner, said)


def test_contact_is_found_by_parts_of_the_name_in_any_order(tenant: Any, viewer: Any) -> None:
    session = _contact(tenant)
    assert reverse("console-conversation", args=[session.pk]) in _typed(viewer, "orte mar")


def test_contact_is_found_by_the_tenants_own_number(tenant: Any, viewer: Any) -> None:
    session = _contact(tenant, customer="C-4711")
    assert reverse("console-conversation", args=[session.pk]) in _typed(viewer, "c-4711")


@pytest.mark.parametrize("form", [str.lower, str.upper])
def test_visitor_without_a_name_is_found_by_the_made_up_one(tenant: Any, viewer: Any, form: Any) -> None:
    session = _contact(tenant, "")
    said = form(pseudonyms.name_of(session.pk))
    assert reverse("console-conversation", args=[session.pk]) in _typed(viewer, said)


def test_what_a_visitor_wrote_is_not_searched(tenant: Any, owner: Any) -> None:
    session = _contact(tenant)
    say(session, "My neighbour is called Gudrun")
    assert 'class="group"' not in _typed(owner, "gudrun")


def test_card_that_waits_stands_before_newer_ones_that_do_not(tenant: Any, owner: Any) -> None:
    waits = make_card(tenant, intent="Refund the lamp")
    for number in range(8):
        card = make_card(tenant, intent=f"Refund the lamp number {number}")
        with tenant_scope(tenant):
            decide_card(card.pk, user=owner, verdict="declined")  # type: ignore[arg-type]
    hits = _hits(tenant, owner, "refund lamp", "Decisions")
    assert hits[0].address == reverse("console-card", args=[waits.pk])
    assert hits[0].note == "waiting"


def test_with_nothing_typed_what_waits_is_shown(tenant: Any, viewer: Any) -> None:
    make_card(tenant, intent="Refund the lamp")
    assert "Refund the lamp" in _typed(viewer, "")


def test_work_is_found_by_its_title(tenant: Any, owner: Any, tmp_path: Path) -> None:
    item = make_desk(tenant, tmp_path).waiting()
    assert reverse("console-work-item", args=[item.pk]) in _typed(owner, item.title[:12])


def test_task_is_found_by_its_name(tenant: Any, owner: Any) -> None:
    task = make_house(tenant).task(name="Tea time")
    assert reverse("console-task", args=[task.pk]) in _typed(owner, "tea")


@pytest.mark.parametrize("said", ["%%", "__", "\\\\", "'; --", "\x00%\x00%", "x" * 5000, "١٢"])
def test_signs_that_mean_something_elsewhere_are_only_text(tenant: Any, owner: Any, said: str) -> None:
    make_card(tenant)
    assert "postal address" not in _typed(owner, said)


def test_one_letter_asks_for_pages_only(tenant: Any, owner: Any) -> None:
    make_card(tenant)
    assert "postal address" not in _typed(owner, "p")


def test_name_with_markup_is_only_text(tenant: Any, owner: Any) -> None:
    _contact(tenant, NASTY)
    page = _typed(owner, "onerror")
    assert "&lt;img" in page
    assert "<img" not in page


def test_what_is_typed_comes_back_as_text(owner: Any) -> None:
    assert "<img" not in _typed(owner, NASTY)


def test_nothing_found_says_so(owner: Any) -> None:
    assert "No results for “zzzz”" in _typed(owner, "zzzz")


def test_answer_is_never_kept_by_the_browser(owner: Any) -> None:
    assert "no-store" in browser(owner).get(reverse("console-palette"))["Cache-Control"]


@pytest.mark.parametrize("count", [1, 3])
def test_number_of_hits_does_not_change_the_number_of_queries(tenant: Any, owner: Any, count: int) -> None:
    for number in range(count):
        _contact(tenant, f"Ortega {number}")
        make_card(tenant, intent=f"Pay Ortega {number}")
    client = browser(owner)
    client.get(reverse("console-palette"))
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("console-palette"), {"q": "ortega"})
    assert len(queries) == QUERIES


QUERIES = 16  # one a kind of things, the rest is the login's and the scope's


IN_THE_CONSOLE = [page for group in SETTINGS for page in group.pages if page.name.startswith("console-")]


@pytest.mark.parametrize("page", IN_THE_CONSOLE, ids=lambda page: page.name)
def test_page_of_settings_is_shown_within_settings(page: SettingsPage) -> None:
    assert settings_page(page.name) == page
