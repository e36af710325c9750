"""Write the typed Python client from docs/openapi.yaml: `make clients`.

`types.py` comes from datamodel-code-generator (one TypedDict for each schema), `operations.py` from here (one typed
method for each operation). What sends requests, `transport.py`, is written by hand.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "docs" / "openapi.yaml"
PYTHON = ROOT / "clients" / "python-rest" / "src" / "silas_client"
GENERATOR = ROOT / "var" / "client-generator"
JSON = "application/json"
# Of the schema that the client was written from; a test compares it.
DIGEST = PYTHON / "openapi.sha256"

_HEAD = '''"""Every operation of the REST API, one method each. Generated from docs/openapi.yaml by `make clients`."""

from __future__ import annotations

from typing import Any, Literal

from silas_client import types as t
from silas_client.transport import Transport


class Operations(Transport):
    """Methods raise `ApiError` for every answer that is not a success, and `httpx2.HTTPError` without an answer."""
'''


@dataclass
class Parameter:
    """`name` as the API spells it, `python` as the method does; `type` is a Python annotation."""

    name: str
    type: str
    required: bool

    @property
    def python(self) -> str:
        name = re.sub(r"\W", "_", self.name).lower()
        return f"{name}_" if keyword.iskeyword(name) else name


@dataclass
class Operation:
    name: str
    method: str
    path: str
    text: str
    result: str
    body: str = ""
    body_required: bool = False
    is_form: bool = False
    places: dict[str, list[Parameter]] = field(default_factory=lambda: {"path": [], "query": [], "header": []})


def main() -> None:
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    _write_types()
    (PYTHON / "operations.py").write_text(python_operations(schema), encoding="utf-8")
    written = [PYTHON / "types.py", PYTHON / "operations.py"]
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *written], cwd=ROOT, check=True)
    DIGEST.write_text(digest() + "\n")


def digest() -> str:
    return hashlib.sha256(SCHEMA.read_bytes()).hexdigest()


def _write_types() -> None:
    options = ["--input-file-type", "openapi", "--output-model-type", "typing.TypedDict", "--target-python-version"]
    shape = ["3.11", "--use-union-operator", "--enum-field-as-literal", "all", "--use-standard-collections"]
    output: list[str | Path] = [PYTHON / "types.py", "--disable-timestamp", "--formatters", "builtin"]
    program = [sys.executable, "-m", "datamodel_code_generator"]
    subprocess.run(
        [*program, "--input", SCHEMA, *options, *shape, "--output", *output],
        cwd=ROOT,
        check=True,
        env={"PYTHONPATH": str(GENERATOR)},
    )


def python_operations(schema: dict[str, Any]) -> str:
    """The source of `operations.py` for this OpenAPI document."""
    return _HEAD + "".join(f"\n{_method(operation)}" for operation in _operations(schema))


def _operations(schema: dict[str, Any]) -> Iterator[Operation]:
    for path, item in schema["paths"].items():
        for method, each in item.items():
            operation = Operation(each["operationId"], method.upper(), path, each.get("description", ""), _result(each))
            for parameter in each.get("parameters", ()):
                known = Parameter(parameter["name"], _annotation(parameter["schema"]), parameter.get("required", False))
                operation.places[parameter["in"]].append(known)
            if body := each.get("requestBody"):
                kind, content = next(iter(body["content"].items()))
                operation.body = _annotation(content["schema"]) if kind == JSON else "dict[str, Any]"
                operation.is_form = kind != JSON
                operation.body_required = bool(body.get("required"))
            yield operation


def _result(operation: dict[str, Any]) -> str:
    """The annotation of the first success: JSON by its schema, other content as bytes."""
    content: dict[str, Any] = next(
        (each.get("content", {}) for code, each in operation["responses"].items() if code[0] == "2"), {}
    )
    if not content:
        return "None"
    return _annotation(content[JSON]["schema"]) if JSON in content else "bytes"


def _annotation(schema: dict[str, Any]) -> str:
    if reference := schema.get("$ref"):
        return f"t.{reference.rsplit('/', 1)[1]}"
    if values := schema.get("enum"):
        return f"Literal[{', '.join(map(repr, values))}]"
    if schema.get("type") == "array":
        return f"list[{_annotation(schema['items'])}]"
    if parts := schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf"):
        return " | ".join(dict.fromkeys(_annotation(part) for part in parts))
    if schema.get("type") == "object":
        return "dict[str, Any]"
    simple = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    kinds = schema.get("type", ())
    names = [simple.get(kind, "Any") for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    return " | ".join(names) or "Any"


def _method(operation: Operation) -> str:
    places = operation.places
    given = [f"{each.python}: {each.type}" for each in places["path"]]
    if operation.body and operation.body_required:
        given.append(f"body: {operation.body}")
    elif operation.body:
        given.append(f"body: {operation.body} | None = None")
    optional = [*places["query"], *places["header"]]
    named = [f"{each.python}: {each.type}" + ("" if each.required else " | None = None") for each in optional]
    signature = ", ".join(["self", *given, *(["*", *named] if named else [])])
    call = [repr(operation.method), _path(operation)]
    for place, argument in (("query", "query"), ("header", "headers")):
        if parameters := places[place]:
            call.append(f"{argument}={{{', '.join(f'{each.name!r}: {each.python}' for each in parameters)}}}")
    if operation.body:
        call.append("form=body" if operation.is_form else "body=body")
    read = "self.read" if operation.result == "bytes" else "self.call"
    lines = [f"    def {operation.name}({signature}) -> {operation.result}:", f"        {_docstring(operation.text)}"]
    sent = f"{read}({', '.join(call)})"
    if operation.result == "None":
        lines.append(f"        {sent}")
    else:
        lines += [f"        answer: {operation.result} = {sent}", "        return answer"]
    return "\n".join(line for line in lines if line.strip()) + "\n"


def _path(operation: Operation) -> str:
    """The path as an f-string that escapes what is put into it."""
    names = {each.name: each.python for each in operation.places["path"]}
    filled = re.sub(r"\{(\w+)\}", lambda found: f"{{self.segment({names[found[1]]})}}", operation.path)
    return f"f{filled!r}" if names else repr(filled)


def _docstring(text: str) -> str:
    words = " ".join(text.split()).replace("\\", "").replace('"', "'")
    return "\n        ".join(textwrap.wrap(f'"""{words}"""', 110)) if words else ""


if __name__ == "__main__":
    main()
