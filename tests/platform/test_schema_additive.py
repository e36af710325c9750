"""The REST API is only added to: what docs/openapi-names.txt lists, the last release had and callers rely on."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tools.schema_names import DOCS, is_request, names_of, read_list

BEFORE, NOW = read_list(), names_of(yaml.safe_load((DOCS / "openapi.yaml").read_text()))


def breaks(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[str]:
    """What is gone, and what a request needs that it did not need before."""
    found = []
    for name, fields in before.items():
        there = after.get(name)
        if there is None:
            found.append(f"{name} is gone")
            continue
        plain, kept = {field.rstrip("*") for field in fields}, {field.rstrip("*") for field in there}
        found += [f"{name}.{field} is gone" for field in sorted(plain - kept)]
        if is_request(name):
            found += [f"{name}.{field} is required" for field in sorted(there - fields) if field.endswith("*")]
    return found


def test_nothing_that_callers_rely_on_is_gone_or_newly_required() -> None:
    assert breaks(BEFORE, NOW) == []


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ({}, ["GET /a is gone", "ARequest is gone"]),
        ({"GET /a": {"a_list"}, "ARequest": {"x"}}, ["ARequest.y is gone"]),
        ({"GET /a": {"a_get"}, "ARequest": {"x", "y*"}}, ["GET /a.a_list is gone"]),
        ({"GET /a": {"a_list"}, "ARequest": {"x*", "y*"}}, ["ARequest.x* is required"]),
        ({"GET /a": {"a_list"}, "ARequest": {"x", "y*", "z*"}}, ["ARequest.z* is required"]),
        ({"GET /a": {"a_list"}, "ARequest": {"x", "y", "z"}, "POST /a": {"a_create"}}, []),
    ],
)
def test_break_is_named(after: dict[str, Any], found: list[str]) -> None:
    assert breaks({"GET /a": {"a_list"}, "ARequest": {"x", "y*"}}, after) == found
