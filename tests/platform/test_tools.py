"""The scripts behind `make`: which browser the tests get, and when an environment is made again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from silas_platform.up.environment import ROOT

SAYS_WHAT_IT_GOT = '#!/bin/sh\necho "browser=$SILAS_CHROMIUM arguments=$*"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose Python only says what it was asked, on a machine without a browser."""
    _program(tmp_path / ".venv" / "bin" / "python", SAYS_WHAT_IT_GOT)
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (tmp_path / "bin").mkdir()
    for name in ("sh", "id", "dirname", "mktemp", "rm", "cat", "tee", "touch", "grep", "cut", "nice", "xargs"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def make_test(checkout: Path, *tests: str, **env: str) -> subprocess.CompletedProcess[str]:
    told = {"PATH": str(checkout / "bin"), **env}
    return subprocess.run(
        ["sh", "tools/test", *tests], cwd=checkout, env=told, check=False, capture_output=True, text=True
    )


def test_quick_run_has_two_parts_and_wants_no_browser(checkout: Path) -> None:
    made = make_test(checkout, "quick", SILAS_REQUIRE_BROWSER="1")
    first, second = made.stdout.splitlines()
    assert made.returncode == 0
    assert "tests/guard" in first
    assert "tests/architecture" in second


def test_browser_of_machine_is_named_by_its_path_unless_another_is_named(checkout: Path) -> None:
    _program(checkout / "bin" / "chromium", "#!/bin/sh\n")
    said = make_test(checkout, "tests/bus").stdout
    assert said == f"browser={checkout}/bin/chromium arguments=-m pytest tests/bus\n"
    assert "browser=/opt/browser " in make_test(checkout, "tests/bus", SILAS_CHROMIUM="/opt/browser").stdout


def test_shell_without_windows_comes_before_the_whole_browser(checkout: Path) -> None:
    _program(checkout / "bin" / "chromium", "#!/bin/sh\n")
    _program(checkout / "bin" / "chromium-headless-shell", "#!/bin/sh\n")
    said = make_test(checkout, "tests/bus").stdout
    assert said.startswith(f"browser={checkout}/bin/chromium-headless-shell ")


def test_machine_without_browser_leaves_browser_tests_out_in_one_line(checkout: Path) -> None:
    done = make_test(checkout, "tests/bus")
    assert done.stdout == "browser= arguments=-m pytest -m not browser tests/bus\n"
    assert done.stderr.splitlines()[-1] == "test: browser tests skipped: no Chromium on this machine"
    whole = make_test(checkout)
    assert whole.returncode == 0
    assert "not browser tests/e2e" not in whole.stdout


def test_machine_without_browser_fails_when_one_is_required(checkout: Path) -> None:
    done = make_test(checkout, "tests/bus", SILAS_REQUIRE_BROWSER="1")
    assert done.returncode == 1
    assert done.stdout == ""


def test_whole_run_that_passes_ends_well(checkout: Path) -> None:
    done = make_test(checkout, SILAS_CHROMIUM="/opt/browser")
    assert [line.split()[6] for line in done.stdout.splitlines()] == [
        "tests/e2e",
        "tests/console",
        "tests/work",
        "tests/platform",
        "tests/faults",
        "--ignore",
    ]
    assert done.returncode == 0


def test_whole_run_asks_a_failed_test_once_more_and_says_so(checkout: Path) -> None:
    said = 'echo "RERUN tests/x.py::test_y of $6"'
    _program(checkout / ".venv" / "bin" / "python", f'#!/bin/sh\n[ "$3 $4 $5" != "-raR --reruns 1" ] || {said}\n')
    done = make_test(checkout, SILAS_CHROMIUM="/opt/browser")
    named = done.stdout.partition("test: failed at least once, each a flaw to be mended:\n")[2].splitlines()
    assert done.returncode == 0
    assert len(named) == 6


@pytest.mark.parametrize("folder", ["tests/e2e", "tests/faults", "tests/platform", "tests/work", "--ignore"])
def test_whole_run_whose_part_fails_names_it_last(checkout: Path, folder: str) -> None:
    failing = f'''#!/bin/sh
[ "$6" != "{folder}" ] || {{ echo "FAILED of {folder}"; exit 1; }}
echo "passed $6"
'''
    _program(checkout / ".venv" / "bin" / "python", failing)
    done = make_test(checkout, SILAS_CHROMIUM="/opt/browser")
    assert done.stdout.splitlines()[-2:] == ["test: not passed:", f"FAILED of {folder}"]
    assert done.returncode == 1


@pytest.mark.slow
def test_environment_is_made_once_for_each_list_of_requirements(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    requirements = tmp_path / "requirements" / "base.txt"
    requirements.parent.mkdir()
    requirements.write_text("# nothing\n")
    said = [_bootstrap(tmp_path), _bootstrap(tmp_path)]
    requirements.write_text("# nothing, otherwise\n")
    said.append(_bootstrap(tmp_path))
    assert ["installing" in text for text in said] == [True, False, True]
    assert ["making .venv" in text for text in said] == [True, False, False]


def _bootstrap(checkout: Path) -> str:
    command = ["tools/bootstrap", "base"]
    env = {**os.environ, "PYTHON": str(Path(sys.base_prefix) / "bin" / "python3")}
    return subprocess.run(command, cwd=checkout, env=env, check=True, capture_output=True, text=True).stderr


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
