"""Where nothing can isolate a process, nothing runs."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import SandboxUnavailable, backend, seccomp
from sandbox.backends import Bubblewrap, Unshare, candidates, choose_backend
from sandbox.runner import probe_backend
from tests.sandbox.conftest import WORKING

REPOSITORY = Path(__file__).resolve().parents[2]
ASK = """
from sandbox import SandboxSpec, SandboxUnavailable, run
try:
    run(SandboxSpec(["true"]))
    print("ran")
except SandboxUnavailable as error:
    print("refused", error.code)
"""


def test_backend_works_on_this_machine():
    assert backend() in WORKING


def test_backend_without_privileges_or_user_namespaces_refuses():
    """A container as most platforms start them: no capabilities, no new user namespaces."""
    strip = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all -- "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", strip, "sh", sys.executable, "-c", ASK]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == "refused sandbox_unavailable\n"


ORDINARY = '''
from sandbox.backends import candidates
from sandbox.runner import probe_backend, run_on
from sandbox.spec import SandboxSpec

LOOK = """
import os
for name in ("mem", "environ", "fd/3"):
    try:
        os.open("/proc/1/" + name, os.O_RDONLY)
        print("opened")
    except OSError:
        pass
"""
BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""

def run(candidate, source):
    return run_on(candidate, SandboxSpec(["python3", "-I", "-S", "-c", source], processes=20))

for candidate in candidates():
    if not probe_backend(candidate):
        print(candidate.user_namespace, repr(run(candidate, LOOK).stdout), run(candidate, BOMB).reason)
'''


@pytest.fixture
def open_copy() -> Iterator[Path]:
    """The code of the sandbox where everybody can read it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "sandbox", Path(folder) / "sandbox")
        (Path(folder) / "kernel/http").mkdir(parents=True)
        for name in ("__init__.py", "error_codes.py", "errors.py", "http/__init__.py", "http/addresses.py"):
            shutil.copy(REPOSITORY / "kernel" / name, Path(folder) / "kernel" / name)
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_backend_for_an_ordinary_user_isolates_as_well(open_copy):
    """Process 1 is then the same user as the script, which must still not reach into it."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin") if become else sys.executable
    command = [*become, python, "-c", ORDINARY]
    result = subprocess.run(command, cwd=open_copy, capture_output=True, text=True, timeout=60, check=False)
    assert set(result.stdout.splitlines()) == {"True '' process_limit"}


def test_backend_without_bubblewrap_is_our_own(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose_backend(probe_backend).name == "unshare"


def test_backend_whose_trial_fails_is_passed_over():
    chosen = choose_backend(lambda candidate: "broken" if candidate.name == "bubblewrap" else "")
    assert chosen.name == "unshare"


def test_backend_when_all_trials_fail_names_every_reason():
    with pytest.raises(SandboxUnavailable, match="unshare: broken"):
        choose_backend(lambda candidate: "broken")


def test_candidates_prefer_bubblewrap_when_installed():
    expected = Bubblewrap if shutil.which("bwrap") else Unshare
    assert isinstance(next(candidates()), expected)


def test_candidates_as_root_prefer_an_own_user():
    assert next(candidates()).user_namespace is (os.geteuid() != 0)


def test_filter_on_unknown_architecture_refuses(monkeypatch):
    monkeypatch.setattr(seccomp, "MACHINES", {})
    with pytest.raises(SandboxUnavailable, match="architecture"):
        choose_backend(probe_backend)
