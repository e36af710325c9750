"""Every example in the OpenAPI schema is what the operation takes and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

from silas_platform.api_examples import EXAMPLES
from tools.schema_names import DOCS

SCHEMA = yaml.safe_load((DOCS / "openapi.yaml").read_text())


def described() -> Iterator[tuple[str, Any, Any]]:
    """Yield operation, schema and value of every example."""
    for methods in SCHEMA["paths"].values():
        for operation in methods.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (media for body in bodies for media in body.get("content", {}).values()):
                for example in media.get("examples", {}).values():
                    yield operation["operationId"], media["schema"], example["value"]


@pytest.mark.parametrize(("operation", "schema", "value"), list(described()))
def test_example_is_valid(operation: str, schema: dict[str, Any], value: Any) -> None:
    whole = {**schema, "components": SCHEMA["components"]}
    Draft202012Validator(whole, format_checker=FormatChecker()).validate(value)
    if "$ref" in schema:
        assert set(value) <= SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"].keys()


def test_every_example_is_in_the_schema() -> None:
    assert {operation for operation, _, _ in described()} == set(EXAMPLES)
