"""`silas init` and `silas start`: preparing an installation, as often as one likes, without showing a secret."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from silas_platform.up.environment import KEYS, ROOT
from tests import prepared
from tests.platform.runs import Run, remains

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def initialized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[str]]:
    """A data folder with what two runs of `init` in it said."""
    var = tmp_path_factory.mktemp("init")
    prepared.lay(var)
    said = []
    for _ in range(2):
        run = Run(var, command=("init",))
        assert run.wait() == 0, run.lines
        said.append([line.replace(str(run.port), "PORT") for line in run.lines])
    return var, said[0], said[1]


def test_init_says_what_it_found_and_where_to_go_on(initialized: tuple[Path, list[str], list[str]]) -> None:
    _, first, _ = initialized
    subjects = [line.split()[0] for line in first if not line.startswith(("System", "WARN", "?", "\n")) and line]
    assert subjects == ["keys", "database", "sandbox", "guardrails", "set", "ready"]
    assert any(line.startswith("set up     http://127.0.0.1:PORT/console/setup/") for line in first)


def test_second_run_changes_nothing(initialized: tuple[Path, list[str], list[str]]) -> None:
    _, first, second = initialized
    assert first == second


def test_no_private_key_is_printed_and_no_server_stays(initialized: tuple[Path, list[str], list[str]]) -> None:
    var, first, second = initialized
    for name in KEYS:
        assert (var / "keys" / name.lower()).read_text().strip() not in "\n".join(first + second)
    assert remains(var) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script alone, with an interpreter that prints its arguments."""
    shutil.copy(ROOT / "silas", tmp_path / "silas")
    programs = {"tools/bootstrap": "exit 0", "tools/guardrails": "echo guardrails", ".venv/bin/python": 'echo "$*"'}
    for name, text in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    return tmp_path


def _silas(checkout: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run([checkout / "silas", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


def test_commands_are_those_of_manage_py(checkout: Path) -> None:
    assert _silas(checkout, "init") == (0, "manage.py init")
    assert _silas(checkout, "init", "--guardrails") == (0, "guardrails\nmanage.py init")
    assert _silas(checkout, "start") == (0, "manage.py up --no-demo")
    assert _silas(checkout, "start", "--no-worker") == (0, "manage.py up --no-demo --no-worker")


@pytest.mark.parametrize("arguments", [(), ("stop",)])
def test_other_command_is_refused_with_the_usage(checkout: Path, arguments: tuple[str, ...]) -> None:
    assert _silas(checkout, *arguments)[0] == 2
