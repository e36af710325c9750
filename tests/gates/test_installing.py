"""When does `tools/guardrails` install, and what stays when it cannot? With an interpreter that installs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

# Says what it was asked for; `pip` makes a folder, the program starts or does not.
INTERPRETER = f"""#!/bin/sh
echo "$*" >>"$ASKED"
case "$*" in
    *pip*--target*) while [ "$1" != --target ]; do shift; done; mkdir -p "$2/guardrails" ;;
    *validator.py*) exit "${{STARTS:-0}}" ;;
    *) exec {sys.executable} "$@" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "python").write_text(INTERPRETER)
    (tmp_path / "python").chmod(0o755)
    return tmp_path / "library"


def install(folder: Path, *, starts: int = 0) -> tuple[int, int]:
    """The exit code, and how often something was installed until now."""
    asked = folder.parent / "asked"
    env = {**os.environ, "PYTHON": str(folder.parent / "python"), "ASKED": str(asked), "STARTS": str(starts)}
    done = subprocess.run(["tools/guardrails", str(folder)], cwd=ROOT, env=env, capture_output=True, check=False)
    return done.returncode, asked.read_text().count("pip install")


def test_what_is_there_already_is_not_installed_again(folder: Path) -> None:
    assert [install(folder), install(folder)] == [(0, 1), (0, 1)]
    assert (folder / "guardrails").is_dir()


def test_other_requirements_are_installed_in_its_place(folder: Path) -> None:
    install(folder)
    (folder / "installed").write_text("others")
    (folder / "old").touch()
    assert install(folder) == (0, 2)
    assert not (folder / "old").exists()


def test_only_what_its_hash_names_is_installed_and_nothing_is_built(folder: Path) -> None:
    install(folder)
    (asked,) = (line for line in (folder.parent / "asked").read_text().splitlines() if "pip install" in line)
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps"} <= set(asked.split())


def test_library_that_does_not_start_replaces_nothing(folder: Path) -> None:
    install(folder)
    (folder / "installed").write_text("others")
    assert install(folder, starts=1) == (1, 2)
    assert (folder / "installed").read_text() == "others"


def test_two_who_install_at_once_install_once(folder: Path) -> None:
    env = {**os.environ, "PYTHON": str(folder.parent / "python"), "ASKED": str(folder.parent / "asked")}
    both = [subprocess.Popen(["tools/guardrails", str(folder)], cwd=ROOT, env=env) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert (folder.parent / "asked").read_text().count("pip install") == 1
