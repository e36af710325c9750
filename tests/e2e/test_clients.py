"""The generated REST clients, each against a running server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_tenant
from tools import generate_clients

CLIENTS = Path(__file__).parents[2] / "clients"
PYTHON, TYPESCRIPT = CLIENTS / "python-rest", CLIENTS / "typescript"
# Commands that install from npm's registry may have none.
needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


@pytest.fixture
def key(database: None) -> str:
    with tenant_scope(make_tenant()):
        return create_api_key("Client").key


@pytest.fixture
def client(web: str, key: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(PYTHON / "src"))
    from silas_client import Client

    with Client(web, key) as made:
        yield made


def test_python_client_was_written_from_the_present_schema() -> None:
    """`make clients` writes it anew."""
    assert generate_clients.DIGEST.read_text().strip() == generate_clients.digest()


def test_python_client_writes_reads_and_pages(client: Any) -> None:
    names = [f"label {number}" for number in range(3)]
    for name in names:
        client.labels_create({"name": name, "colour": "green"})
    assert [label["name"] for label in client.labels_list()["labels"]] == names
    assert len(list(client.pages(client.audit_list, limit=2))) >= len(names)


def test_python_client_raises_refusals_with_their_code(client: Any) -> None:
    from silas_client import ApiError

    with pytest.raises(ApiError) as unknown:
        client.cards_get(str(uuid4()))
    assert unknown.value.status == 404
    assert unknown.value.code == "not_found"
    with pytest.raises(ApiError) as wrong:
        client.labels_create({"name": "vip", "colour": "green", "size": 3})
    assert wrong.value.status == 400
    assert list(wrong.value.extra["fields"]) == ["size"]


def test_segment_of_a_path_cannot_leave_it(client: Any) -> None:
    from silas_client import ApiError

    with pytest.raises(ApiError) as refused:
        client.cards_get("../labels")
    assert refused.value.status == 404


def test_python_client_is_typed(tmp_path: Path) -> None:
    """A wrong field and a wrong choice are found before anything is sent."""
    program = tmp_path / "program.py"
    program.write_text(
        "from silas_client import Client\n"
        "client = Client('http://127.0.0.1', 'sk_')\n"
        "print(client.cards_list(state='open')['cards'][0]['intent'])\n"
        "print(client.cards_list(state='closed'))\n"
        "print(client.cards_list()['crads'])\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path), str(program)]
    env = {**os.environ, "MYPYPATH": str(PYTHON / "src")}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert [line.split(":")[1] for line in found.stdout.splitlines() if ": error:" in line] == ["4", "5"], found.stdout


@needs_node
def test_typescript_client_compiles_and_works(web: str, key: str, tmp_path: Path) -> None:
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(TYPESCRIPT, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.ts"))
    (tmp_path / "docs").mkdir()
    shutil.copy(generate_clients.SCHEMA, tmp_path / "docs")
    program = """
        import { ApiError, silas } from "./dist/index.js";
        const client = silas(process.argv[1], process.argv[2]);
        await client.POST("/api/v1/labels", { body: { name: "vip", colour: "green" } });
        const { data } = await client.GET("/api/v1/labels");
        console.log(data.labels.map((label) => label.name).join());
        await client.POST("/api/v1/labels", { body: { name: "vip", colour: "green" } }).catch((error) =>
            console.log(error instanceof ApiError, error.status, error.code));
    """
    _node(folder, "npm", "ci", "--no-fund", "--no-audit")
    printed = _node(folder, "node", "--input-type=module", "--eval", program, web, key)
    assert printed == ["vip", "true 409 name_taken"]


def _node(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
