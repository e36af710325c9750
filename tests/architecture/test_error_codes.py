"""Error codes stand in one registry, and each of them is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from rest_framework.exceptions import APIException

from apps.approvals.enums import CardStatus
from apps.approvals.models import OPEN_STATUSES
from apps.autonomy.enums import SpawnRefusal
from apps.bus.rules import ROUTES
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import in_language
from tests.architecture.source import Module, modules

REGISTRY = "kernel.error_codes"
# Codes that are made of another value; `ErrorCode(...)` refuses an unknown one.
CONVERTED = {
    "DRF's own errors": {error.default_code for error in (APIException, *APIException.__subclasses__())},
    "a session that was not started": set(SpawnRefusal.values),
    "a field that a message needs": {f"{name}_missing" for route in ROUTES.values() for name in route.needs},
    "a card that was settled": {f"card_{status}" for status in CardStatus if status not in OPEN_STATUSES},
}


def subclasses(base: type) -> Iterator[str]:
    yield base.__name__
    for child in base.__subclasses__():
        yield from subclasses(child)


def literal_codes(module: Module) -> list[str]:
    """Errors of this module that are raised with a text where their code belongs."""
    errors = {*subclasses(SilasError), "AnswerRefused"}
    found = []
    for node in ast.walk(module.tree):
        name = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) and node.args else ""
        if not isinstance(node, ast.Call) or name not in errors:
            continue
        first = node.args[0]
        known = isinstance(first, ast.Constant) and first.value in set(ErrorCode)
        if known or (name == "SilasError" and isinstance(first, ast.Constant | ast.JoinedStr)):
            found.append(f"{module.name}:{node.lineno}")
    return found


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('SilasError("not_found", "No.")', 1),
        ('errors.SilasError(f"card_{status}", "No.")', 1),
        ('NotBelieved("passkey_refused")', 1),
        ('SilasError(ErrorCode.NOT_FOUND, "No.")', 0),
        ('NotFound("message")', 0),
    ],
)
def test_literal_codes_are_found(source: str, count: int) -> None:
    from apps.tenants import login_passkeys  # noqa: F401 (its error is a subclass)

    assert len(literal_codes(Module("sample", None, ast.parse(source)))) == count  # type: ignore[arg-type] # has no file


def test_no_code_is_a_literal() -> None:
    assert [place for module in modules() for place in literal_codes(module)] == []


def test_an_error_without_a_text_of_its_own_has_its_code_s() -> None:
    silent = [
        node.args[0].attr
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "SilasError" and len(node.args) == 1
        if isinstance(node.args[0], ast.Attribute)
    ]
    assert silent
    assert [name for name in silent if not ErrorCode[name].text] == []


def test_the_text_of_a_code_is_translated() -> None:
    with in_language("de"):
        assert SilasError(ErrorCode.BATCH_SETTLED).message == "Über diesen Stapel wurde bereits entschieden."


@pytest.mark.parametrize("origin", CONVERTED)
def test_every_code_made_of_another_value_is_registered(origin: str) -> None:
    assert CONVERTED[origin] - set(ErrorCode) == set()


def test_every_code_is_used() -> None:
    named = {
        name.removeprefix(f"{REGISTRY}.ErrorCode.")
        for module in modules()
        if module.name != REGISTRY
        for name, _ in module.mentions
        if name.startswith(f"{REGISTRY}.ErrorCode.")
    }
    converted = {code for codes in CONVERTED.values() for code in codes}
    assert [code for code in ErrorCode if code.name not in named and code not in converted] == []


def test_the_name_of_a_code_is_the_code() -> None:
    assert [code.name for code in ErrorCode] == [code.value.upper() for code in ErrorCode]


def test_codes_are_sorted() -> None:
    assert list(ErrorCode) == sorted(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_the_status_is_one_of_an_error(code: ErrorCode) -> None:
    assert 400 <= code.status < 600
