"""Write the names of the REST API to docs/openapi-names.txt: what callers rely on, and what a release may only add to.

A line is an operation with its address, or a schema with its fields or values; a request's field ends in `*` if it is
required. `tests/platform/test_schema_additive.py` compares the list with the schema. Run at a release.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[1] / "docs"
LIST = DOCS / "openapi-names.txt"


def names_of(schema: dict[str, Any]) -> dict[str, set[str]]:
    """By operation or schema, the names that it has."""
    operations = {
        f"{method.upper()} {path}": {operation["operationId"]}
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }
    described = schema["components"]["schemas"]
    return {**operations, **{name: _fields(name, described[name]) for name in described}}


def read_list() -> dict[str, set[str]]:
    lines = (line.partition(": ") for line in LIST.read_text().splitlines())
    return {name: set(fields.split()) for name, _, fields in lines}


def _fields(name: str, described: dict[str, Any]) -> set[str]:
    needed = set(described.get("required", ())) if is_request(name) else set()
    fields = {f"{field}*" if field in needed else field for field in described.get("properties", ())}
    return fields | {str(value) for value in described.get("enum", ()) if value not in ("", None)}


def is_request(name: str) -> bool:
    return name.endswith(("Request", "Body", "Edit", "Change", "RequestBody"))


def main() -> None:
    names = names_of(yaml.safe_load((DOCS / "openapi.yaml").read_text()))
    LIST.write_text("".join(f"{name}: {' '.join(sorted(names[name]))}\n" for name in sorted(names)))


if __name__ == "__main__":
    main()
