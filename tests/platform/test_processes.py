"""What starts does not outlive us, whenever we die; what an earlier run left is found."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from silas_platform.up import processes
from silas_platform.up.environment import ROOT
from tests.platform.runs import eventually, python, remains

# Takes its time before it asks for the signal that its parent's death would send.
SLOW = '#!/bin/sh\nsleep 0.5\nexec {setpriv} "$@"\n'
DIES_AT_ONCE = """
import os
from pathlib import Path
from silas_platform.up import processes
processes.spawn(["sleep", "60"], cwd=Path({folder!r}))
os._exit(0)
"""


def test_child_whose_parent_died_while_it_started_ends(tmp_path: Path) -> None:
    setpriv = tmp_path / "setpriv"
    setpriv.write_text(SLOW.format(setpriv=shutil.which("setpriv")))
    setpriv.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(python(DIES_AT_ONCE.format(folder=str(tmp_path))), env=env, cwd=ROOT, check=True)
    assert eventually(lambda: not remains(tmp_path)), remains(tmp_path)


@pytest.fixture
def left(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """What an earlier run left, under a number that another process had when psutil looked last."""
    process = subprocess.Popen(["sleep", "60"], cwd=tmp_path, env={"SILAS_LEFT": str(tmp_path)})
    earlier = psutil.Process(process.pid)
    earlier._ident = (process.pid, 0.0)
    psutil._pmap[process.pid] = earlier
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("by_mark", [False, True])
def test_leftover_of_a_directory_or_mark_is_ended_whoever_had_its_number_before(
    tmp_path: Path, left: subprocess.Popen[bytes], by_mark: bool
) -> None:
    by_folder = processes.working_in(tmp_path, name="sleep")
    processes.end(processes.marked("SILAS_LEFT", str(tmp_path)) if by_mark else by_folder)
    assert left.poll() is not None
