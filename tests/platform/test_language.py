"""The language of a request: the member's choice, else the browser's, else English."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import get_language

from kernel.language import choose_language, in_language
from tests.factories.console import browser


@pytest.mark.parametrize(
    ("tags", "language"),
    [
        (("de",), "de"),
        (("de-AT",), "de"),
        (("NL_be",), "nl"),
        (("ja", "fr"), "fr"),
        (("", "es"), "es"),
        (("ja",), "en"),
        ((), "en"),
    ],
)
def test_first_language_that_we_have_is_chosen(tags: tuple[str, ...], language: str) -> None:
    assert choose_language(*tags) == language
    with in_language(*tags):
        assert get_language() == language


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("de-CH,de;q=0.9,en;q=0.8", "de"), ("ja,nl;q=0.5", "nl"), ("ar", "en"), ("ja", "en"), ("", "en")],
)
def test_login_page_is_in_the_browsers_language(database: None, accepted: str, language: str) -> None:
    response = Client(headers={"Accept-Language": accepted}).get(reverse("console-login"))
    assert f'<html lang="{language}">' in response.content.decode()
    assert response.headers["Content-Language"] == language
    assert "Accept-Language" in response.headers["Vary"]


def test_visitors_have_a_language_that_members_do_not_have(database: None) -> None:
    assert Client(headers={"Accept-Language": "ar"}).get("/health").headers["Content-Language"] == "ar"


def test_language_of_a_member_comes_before_the_browsers(owner: Any) -> None:
    here = browser(owner)

    def chosen(language: str) -> Any:
        here.post(reverse("console-account-language"), {"language": language})
        return here.get(reverse("console-account"), headers={"Accept-Language": "de"})

    page = chosen("es")
    assert page.headers["Content-Language"] == "es"
    assert '<option value="es" lang="es" selected>' in page.content.decode()
    assert chosen("").headers["Content-Language"] == "de"


def test_language_that_we_do_not_have_is_refused(owner: Any) -> None:
    response = browser(owner).post(reverse("console-account-language"), {"language": "tlh"})
    assert response.status_code == 400
    owner.refresh_from_db()
    assert owner.language == ""
