"""Can a secret that somebody types into a card end anywhere but in the sealed store? Whatever a page sends, no."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.urls import reverse

from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from kernel.tenancy import tenant_scope
from tests.factories.cards import make_kind
from tests.factories.console import HTMX, browser

HUSH = "pk_live_hush-3f9a"
ASKING = [CardKind.SECURE_INPUT, CardKind.DEVICE_CODE, CardKind.BROWSER_REDIRECT]
# Every name that some form of the console reads, and some that a browser's extension might add.
FIELDS = [
    "freetext",
    "text",
    "selected",
    "confirmed",
    "slid",
    "step_up",
    "reason",
    "secret",
    "value",
    "password",
    "0.0",
]
ROOMS = ("approvals", "audit", "work", "bus", "silas_sessions")


def page(user: Any, card: Card) -> str:
    return str(browser(user).get(reverse("console-card", args=[card.pk])).content.decode())


def written_anywhere(tenant: Any, text: str) -> list[str]:
    """The tables of the tenant in which the text stands in any column."""
    tables = [model._meta.db_table for room in ROOMS for model in apps.get_app_config(room).get_models()]
    with tenant_scope(tenant), connection.cursor() as cursor:
        found = []
        for table in tables:
            cursor.execute(f'SELECT 1 FROM "{table}" AS t WHERE to_jsonb(t)::text LIKE %s LIMIT 1', [f"%{text}%"])
            found += [table] if cursor.fetchone() else []
    return found


@pytest.mark.parametrize("choice", ["done", "trouble", "decline", "approve", HUSH])
@pytest.mark.parametrize("kind", ASKING)
def test_secret_sent_with_an_answer_is_kept_nowhere(tenant: Any, owner: Any, kind: CardKind, choice: str) -> None:
    card = make_kind(tenant, kind)
    data = {"choice": choice, **dict.fromkeys(FIELDS, HUSH)}
    browser(owner).post(reverse("console-decide", args=[card.pk]), data, **HTMX)
    assert written_anywhere(tenant, HUSH) == []


@pytest.mark.parametrize("name", FIELDS)
def test_secret_in_any_one_field_is_kept_nowhere(tenant: Any, owner: Any, name: str) -> None:
    card = make_kind(tenant, CardKind.SECURE_INPUT)
    browser(owner).post(reverse("console-decide", args=[card.pk]), {"choice": "done", name: HUSH}, **HTMX)
    assert written_anywhere(tenant, HUSH) == []


def test_search_for_a_text_finds_what_is_kept(tenant: Any, owner: Any) -> None:
    """The search above would find it: free text is kept where a card asks for it."""
    card = make_kind(tenant, CardKind.DECISION)
    data = {"choice": "old", "freetext": "It is the old one."}
    browser(owner).post(reverse("console-decide", args=[card.pk]), data, **HTMX)
    assert written_anywhere(tenant, "It is the old one.") == ["approvals_decision", "approvals_answer"]


@pytest.mark.parametrize("name", ["console-edit", "console-ask-anew", "console-take-back", "console-assign"])
def test_secret_sent_to_another_address_of_the_card_is_kept_nowhere(tenant: Any, owner: Any, name: str) -> None:
    card = make_kind(tenant, CardKind.SECURE_INPUT)
    browser(owner).post(reverse(name, args=[card.pk]), dict.fromkeys(FIELDS, HUSH), **HTMX)
    assert written_anywhere(tenant, HUSH) == []


def test_field_of_a_secret_belongs_to_no_form(tenant: Any, owner: Any) -> None:
    found = page(owner, make_kind(tenant, CardKind.SECURE_INPUT))
    (field,) = re.findall(r'<input[^>]*id="secret"[^>]*>', found)
    assert " name=" not in field and " form=" not in field and " value=" not in field
    assert 'autocomplete="off"' in field and 'type="password"' in field


def test_field_of_a_secret_stands_outside_of_every_form(tenant: Any, owner: Any) -> None:
    found = page(owner, make_kind(tenant, CardKind.SECURE_INPUT))
    before = found[: found.index('id="secret"')]
    assert before.count("<form") == before.count("</form")


def test_page_without_scripts_cannot_say_that_it_was_saved(tenant: Any, owner: Any) -> None:
    """The script that sends it to the store is what enables the button."""
    found = page(owner, make_kind(tenant, CardKind.SECURE_INPUT))
    (button,) = re.findall(r"<button[^>]*data-secret[^>]*>", found)
    assert " disabled" in button and "<noscript>" in found


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_who_may_not_decide_is_asked_for_no_secret(tenant: Any, role: str, request: pytest.FixtureRequest) -> None:
    assert 'id="secret"' not in page(request.getfixturevalue(role), make_kind(tenant, CardKind.SECURE_INPUT))
