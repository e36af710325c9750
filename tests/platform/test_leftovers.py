"""Killed runs of the tests leave no folders for ever, and running ones keep theirs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leftovers import sweep

Resident = tuple[Path, "subprocess.Popen[bytes]"]


@pytest.fixture
def resident(tmp_path: Path) -> Iterator[Resident]:
    """A folder as of a running test, and the process that works in it."""
    place = tmp_path / "silas-tests-alive" / "postgres" / "data"
    place.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=place)
    yield tmp_path / "silas-tests-alive", process
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["silas-tests-dead", "silas-faults-dead", "silas-chaos-dead"])
def test_folder_without_processes_is_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name / "postgres").mkdir(parents=True)
    sweep(tmp_path, older_than=-1)
    assert not (tmp_path / name).exists()


def test_folder_is_kept_until_the_process_that_works_in_it_is_gone(tmp_path: Path, resident: Resident) -> None:
    folder, process = resident
    sweep(tmp_path, older_than=-1)
    assert folder.exists()
    process.kill()
    process.wait()
    sweep(tmp_path, older_than=-1)
    assert not folder.exists()


@pytest.mark.parametrize(("name", "age"), [("silas-tests-young", 600.0), ("silas-notes", -1.0)])
def test_folder_that_is_young_or_not_of_tests_is_kept(tmp_path: Path, name: str, age: float) -> None:
    (tmp_path / name).mkdir()
    sweep(tmp_path, older_than=age)
    assert (tmp_path / name).exists()
