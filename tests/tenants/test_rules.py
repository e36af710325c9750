"""Which settings of a deployment are refused, and with which words?"""

from __future__ import annotations

from typing import Any

import pytest

from apps.tenants import rules
from apps.tenants.enums import Role

MODELS = {"proxy": "builtin:grounded", "planner": "builtin:grounded", "executor": "builtin:grounded"}


def _known(name: str) -> bool:
    return name in ("builtin:grounded", "openai:gpt")


@pytest.mark.parametrize(
    "origin",
    [
        "https://shop.test",
        "https://shop.test:8443",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:8420",
        "http://[::1]:8420",
    ],
)
def test_exact_origin_is_accepted(origin: str) -> None:
    assert rules.origins_problem([origin]) == ""


@pytest.mark.parametrize(
    "origin",
    [
        "http://shop.test",
        "http://localhost.shop.test",
        "https://shop.test/",
        "https://shop.test:443",
        "https://Shop.test",
        "https://*.shop.test",
        "https://shop.test/path",
        "https://user@shop.test",
        "https://shop.test; script-src *",
        "https://shop.test\n",
        " https://shop.test",
        "javascript:alert(1)",
        "*",
        "null",
        "",
        None,
        7,
        ["https://shop.test"],
    ],
)
def test_anything_but_an_exact_origin_is_refused(origin: Any) -> None:
    assert "is not an exact origin" in rules.origins_problem(["https://good.test", origin])


@pytest.mark.parametrize(
    ("typed", "origins"),
    [
        ("localhost:8795", ["http://localhost:8795"]),
        ("localhost:8795/", ["http://localhost:8795"]),
        ("LOCALHOST", ["http://localhost"]),
        ("127.0.0.1:8000/shop?x=1", ["http://127.0.0.1:8000"]),
        ("[::1]:8000", ["http://[::1]:8000"]),
        ("https://localhost:8443", ["https://localhost:8443"]),
        ("shop.test", ["https://shop.test"]),
        ("localhost.shop.test", ["https://localhost.shop.test"]),
        ("https://shop.test/a\n\nshop.test", ["https://shop.test"]),
        ("localhost:8795?a=b/c", ["http://localhost:8795"]),
        ("https://shop.test#/start", ["https://shop.test"]),
        ("shop.test/a?next=https://other.test", ["https://shop.test"]),
        ("", []),
    ],
)
def test_typed_address_becomes_the_origin_that_browsers_send(typed: str, origins: list[str]) -> None:
    assert rules.typed_origins(typed) == origins
    assert rules.origins_problem(origins) == ""


@pytest.mark.parametrize(
    "typed",
    [
        "http://shop.test",
        "localhost:99999",
        "localhost@shop.test",
        "*.shop.test",
        "shop.test; script-src *",
        "javascript:alert(1)",
        "http:/localhost:8795",
        "https:/shop.test",
        "localhost:/path",
        "[",
        "://",
    ],
)
def test_typed_text_that_is_no_allowed_address_is_refused(typed: str) -> None:
    assert "is not an exact origin" in rules.origins_problem(rules.typed_origins(typed))


@pytest.mark.parametrize("listed", ["https://shop.test", {"a": 1}, None, 7])
def test_origins_that_are_no_list_are_refused(listed: Any) -> None:
    assert rules.origins_problem(listed).startswith("Give a list")


@pytest.mark.parametrize(
    "theme",
    [
        {},
        {"accent": "#1f5f8b"},
        {"accent": "#ABCDEF", "mode": "dark", "position": "left", "font": "Inter, 'Open Sans'"},
        {"launcher": "Fragen? Wir helfen \u2013 t\u00e4glich", "placement": "inline"},
        {"home": "off"},
        {"launcher": "\u0627\u0633\u0623\u0644\u0646\u0627"},
    ],
)
def test_theme_that_the_widget_understands_is_accepted(theme: Any) -> None:
    assert rules.theme_problem(theme) == ""


@pytest.mark.parametrize(
    ("theme", "problem"),
    [
        ({"accent": "red"}, "accent must be a colour"),
        ({"accent": "#1f5f8b;}"}, "accent must be a colour"),
        ({"accent": "#1f5f8b\n"}, "accent must be a colour"),
        ({"accent": 7}, "accent must be a colour"),
        ({"mode": "sepia"}, "mode must be"),
        ({"position": "top"}, "position must be"),
        ({"placement": "above"}, "placement must be"),
        ({"home": "maybe"}, "home must be on or off"),
        ({"launcher": ""}, "launcher must be"),
        ({"launcher": " Ask us"}, "launcher must be"),
        ({"launcher": "Ask\nus"}, "launcher must be"),
        ({"launcher": "<b>Ask us</b>"}, "launcher must be"),
        ({"launcher": "Ask \u202esu"}, "launcher must be"),
        ({"font": "x; } body { display: none"}, "font must be"),
        ({"colour": "#1f5f8b"}, "colour is not part of a theme"),
        ([], "Give an object"),
        (None, "Give an object"),
    ],
)
def test_theme_that_means_nothing_is_refused(theme: Any, problem: str) -> None:
    assert problem in rules.theme_problem(theme)


@pytest.mark.parametrize("listed", [[], ["ar"], ["de", "en"]])
def test_languages_of_the_widget_are_accepted(listed: list[str]) -> None:
    assert rules.languages_problem(listed) == ""


@pytest.mark.parametrize("listed", ["de", {"de": 1}, None, [7], [["de"]], ["tlh"], ["de", "de"], ["DE"]])
def test_languages_that_the_widget_does_not_speak_are_refused(listed: Any) -> None:
    assert rules.languages_problem(listed)


@pytest.mark.parametrize("listed", ["text", [7], [""], [" "], None, ["x" * 81], ["x"] * 7])
def test_suggestions_of_another_form_are_refused(listed: Any) -> None:
    assert rules.suggestions_problem(listed)


def test_suggestions_as_people_write_them_are_accepted() -> None:
    assert rules.suggestions_problem(["Where is my order?"]) == ""


def test_known_model_for_each_role_is_accepted() -> None:
    assert rules.models_problem({**MODELS, "planner": "openai:gpt"}, knows_model=_known) == ""


def test_scorer_may_be_named_and_is_known_too() -> None:
    assert rules.models_problem({**MODELS, "scorer": "openai:gpt"}, knows_model=_known) == ""
    assert rules.models_problem({**MODELS, "scorer": "nobody:x"}, knows_model=_known)


@pytest.mark.parametrize(
    "names",
    [
        {**MODELS, "proxy": "openai:unheard-of"},
        {**MODELS, "proxy": ""},
        {**MODELS, "proxy": None},
        {**MODELS, "judge": "builtin:grounded"},
        {"proxy": "builtin:grounded"},
        {},
        [],
        None,
    ],
)
def test_models_missing_unknown_or_for_other_roles_are_refused(names: Any) -> None:
    assert rules.models_problem(names, knows_model=_known)


def test_problems_are_told_for_given_fields_only() -> None:
    problems = rules.deployment_problems({"theme": [], "title": "Desk"}, knows_model=_known)
    assert list(problems) == ["theme"]


@pytest.mark.parametrize("key", ["", "sk_", "sk_" + "a" * 42, "sk_" + "a" * 44, "pk_" + "a" * 43, "sk_" + "é" * 43])
def test_text_of_another_shape_is_no_api_key(key: str) -> None:
    assert not rules.is_api_key(key)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ([Role.OWNER], "It requires an owner."),
        ([Role.OWNER, Role.APPROVER], "It requires an owner or an approver."),
        ([Role.OWNER, Role.APPROVER, Role.VIEWER], "It requires an owner, an approver or a viewer."),
    ],
)
def test_whoever_may_not_reads_who_may(roles: list[Role], said: str) -> None:
    refusal = rules.forbidden_role(roles)
    assert refusal.code == "forbidden_role"
    assert refusal.status == 403
    assert refusal.message == f"You don't have permission to do this. {said}"
