"""Start processes that cannot outlive us, and end them completely.

A child gets a session of its own (Ctrl-C reaches only the supervisor, which then stops children in order) and, where
the system offers it, a parent-death signal, so that children end even when the supervisor is killed with -9.
Start children from the main thread only: the parent-death signal fires when the starting thread ends.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

import psutil

_CAP_DAC_OVERRIDE = 1 << 1
# A parent that died before the signal was set up sends none, so the child checks its parent itself.
_UNLESS_ORPHANED = 'test "$PPID" = "$0" && exec "$@"'


@cache
def _setpriv() -> str | None:
    return shutil.which("setpriv")


def spawn(
    argv: Sequence[str | Path],
    *,
    on_parent_death: signal.Signals = signal.SIGTERM,
    user: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start `argv`; stdout and stderr both go to `output`. `user` (only as root) is the account it runs as."""
    return subprocess.Popen(
        [*_launcher(on_parent_death, user), *map(str, argv)],
        env=dict(env) if env is not None else None,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def run_as(user: str | None, argv: Sequence[str | Path], *, cwd: Path) -> None:
    """Run `argv` to its end; raises `RuntimeError` with its output when it fails."""
    command = [*_launcher(signal.SIGKILL, user), *map(str, argv)]
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{Path(argv[0]).name} failed ({done.returncode}):\n{done.stdout}{done.stderr}")


def _launcher(on_parent_death: signal.Signals, user: str | None) -> list[str]:
    setpriv = _setpriv()
    if setpriv is None:
        if user is not None:
            raise RuntimeError("as root, PostgreSQL can only be started with `setpriv` (package util-linux)")
        return []
    launcher = [setpriv, f"--pdeathsig={on_parent_death.name.removeprefix('SIG')}"]
    if user is not None:
        launcher += [f"--reuid={user}", f"--regid={_primary_group(user)}", "--clear-groups", *_keep_path_access()]
    return [*launcher, "--", "sh", "-c", _UNLESS_ORPHANED, str(os.getpid())]


def _primary_group(user: str) -> int:
    import pwd  # POSIX only, and only root comes here

    return pwd.getpwnam(user).pw_gid


def _keep_path_access() -> list[str]:
    """A checkout under a directory that only root may enter (/root, mktemp -d) must work without opening that directory
    to everyone: the account keeps the one capability to pass through, where we hold it ourselves."""
    status = Path("/proc/self/status").read_text()
    held = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapPrm:")), 16)
    if not held & _CAP_DAC_OVERRIDE:
        return []
    return ["--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"]


def end(processes: Iterable[psutil.Process], *, first: signal.Signals = signal.SIGTERM, grace: float = 30.0) -> None:
    """Signal with `first`, wait `grace` seconds, then kill. Processes that have ended already are ignored."""
    targets = list(processes)
    _signal(targets, first)
    alive = _still_alive(targets, seconds=grace)
    _signal(alive, signal.SIGKILL)
    _still_alive(alive, seconds=5)


def end_group(process: subprocess.Popen[bytes]) -> int:
    """Kill the process group that `process` leads, reap the process and return its exit code.

    Until it is reaped its id cannot be reused, so the group cannot be another program's.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _still_alive(processes: list[psutil.Process], *, seconds: float) -> list[psutil.Process]:
    deadline = time.monotonic() + seconds
    while (alive := [process for process in processes if is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive


def is_alive(process: psutil.Process) -> bool:
    """Return whether it runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def running(attributes: list[str] | None = None) -> Iterator[psutil.Process]:
    """Iterate over all processes, without psutil's cache, in which an entry whose id was reused would seem dead."""
    psutil.process_iter.cache_clear()
    return psutil.process_iter(attributes)


def working_in(directory: Path, *, name: str) -> list[psutil.Process]:
    """Processes called `name` with this working directory, which distinguishes our server from others."""
    here = os.path.realpath(directory)
    candidates = running(["name", "cwd"])
    return [process for process in candidates if process.info["name"] == name and process.info["cwd"] == here]


def marked(name: str, value: str) -> list[psutil.Process]:
    """Processes with `name=value` in their environment, except this one; used to find leftovers."""
    matching = []
    for process in running():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(name) == value:
                matching.append(process)
    return matching
