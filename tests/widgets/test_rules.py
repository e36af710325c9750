"""Which site may open which door? The table, and what no list of origins can do to a policy header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.tenants.rules import as_origin
from apps.widgets import rules


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://site.test", "https://site.test"),
        ("HTTPS://Site.Test/", "https://site.test"),
        ("https://site.test:443", "https://site.test"),
        ("http://site.test:8080", "http://site.test:8080"),
        ("http://127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("http://[::1]:8420", "http://[::1]:8420"),
        ("https://bücher.test", "https://xn--bcher-kva.test"),
        ("https://site.test/path", ""),
        ("https://site.test?x=1", ""),
        ("https://site.test; script-src *", ""),
        ("https://site.test https://evil.test", ""),
        ("https://*.site.test", ""),
        ("https://user@site.test", ""),
        ("https://site.test:99999", ""),
        ("javascript://site.test", ""),
        ("site.test", ""),
        ("null", ""),
        ("*", ""),
        ("", ""),
        (None, ""),
        ({"a": 1}, ""),
        (7, ""),
    ],
)
def test_as_origin_with_any_value_gives_the_browsers_form_or_nothing(text: object, origin: str) -> None:
    assert as_origin(text) == origin


@given(st.lists(st.text(max_size=60)))
def test_frame_policy_with_any_listed_text_keeps_its_directives(listed: list[str]) -> None:
    policy = rules.frame_policy(listed, host="silas.test")
    assert [part.split()[0] for part in policy.split("; ")] == [
        "default-src",
        "script-src",
        "style-src",
        "img-src",
        "font-src",
        "connect-src",
        "base-uri",
        "form-action",
        "frame-ancestors",
    ]


@given(st.text(max_size=60))
def test_as_origin_of_its_own_answer_is_the_same(text: str) -> None:
    origin = as_origin(text)
    assert as_origin(origin) == origin


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("https://silas.test", True),
        ("http://silas.test", True),
        ("https://shop.test", True),
        ("https://SHOP.test", True),
        ("http://shop.test", False),
        ("https://shop.test:8443", False),
        ("https://shop.test.evil.test", False),
        ("https://evil.test", False),
        ("https://silas.test.evil.test", False),
        ("null", False),
        ("", False),
    ],
)
def test_origin_allowed_for_each_origin_is_own_or_listed(origin: str | None, allowed: bool) -> None:
    assert rules.origin_allowed(origin, host="silas.test", listed=["https://shop.test", "*", 7]) is allowed


def test_origin_allowed_with_a_host_that_names_its_default_port_is_still_own() -> None:
    assert rules.origin_allowed("https://silas.test", host="silas.test:443", listed=[])


def test_frame_ancestors_without_a_deployment_is_nobody() -> None:
    assert rules.frame_ancestors(None) == ("'none'",)


def test_frame_ancestors_of_a_deployment_is_the_platform_and_its_list() -> None:
    assert rules.frame_ancestors(["https://shop.test", "bad"]) == ("'self'", "https://shop.test")


@pytest.mark.parametrize("key", ["", "a", "A-key", "-abc", "a/b", "abc\x00", "ключ", "a" * 64, "abc "])
def test_is_key_with_a_misshapen_key_says_no(key: str) -> None:
    assert not rules.is_key(key)
