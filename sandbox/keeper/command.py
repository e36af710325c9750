"""Start the sandboxed command: its writable files, its limits, and the last steps before the untrusted program runs."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import struct

from .system import (
    CLONE_NEWUSER,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_SECCOMP,
    SECCOMP_MODE_FILTER,
    checked,
    prctl,
    unshare,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .config import Config

BASE = "/sandbox"
# Where we are not root, the tool outside and process 1 count for the command's user too.
_OURS = 4
# The watch must get the processor before a crowd of sandboxed processes does; so must users who wait for pages.
_BEHIND = 10
_HIGHEST_DESCRIPTOR = 65_536
# Where the command finds what it was given beside its output.
SECRET, SECRET_OUT = 3, 4
_PLACES = {"stdin": 0, "stdout": 1, "stderr": 2, "secret": SECRET, "secret_out": SECRET_OUT}
# A limit of 0 still lets a machine hand the core to a program; 1 is what the kernel takes for "none at all".
_NO_CORE = 1


def stage(config: Config) -> int:
    """Create the writable directories; returns a descriptor of out/, opened before anything untrusted runs."""
    owner = config["uid"] if config["uid"] is not None else -1
    for name in ("work", "out", "tmp"):
        os.mkdir(f"{BASE}/{name}", 0o755)
        os.chown(f"{BASE}/{name}", owner, owner)
    for name, content in config["work"]:
        path = f"{BASE}/work/{name}"
        _make_parents(path, owner)
        with open(path, "wb") as handle:
            handle.write(content)
        os.chown(path, owner, owner)
    return os.open(f"{BASE}/out", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _make_parents(path: str, owner: int) -> None:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        _make_parents(parent, owner)
        os.mkdir(parent, 0o755)
        os.chown(parent, owner, owner)


def start(config: Config, stdout: int, stderr: int, extras: dict[str, int]) -> int:
    """Fork the command into the sandbox; returns its process id as seen from here."""
    child = os.fork()
    if child == 0:
        _execute(config, {**extras, "stdout": stdout, "stderr": stderr})
    return child


def _execute(config: Config, given: dict[str, int]) -> NoReturn:
    """Run the command in the forked child: never returns."""
    try:
        os.setsid()
        if config["bwrap"] and config["user_namespace"]:
            # bwrap's own two processes inside are then the same user: one namespace further down it cannot touch them.
            unshare(CLONE_NEWUSER)
        # The kernel shall take this one first when the machine is out of memory.
        with open("/proc/self/oom_score_adj", "w") as handle:
            handle.write("1000")
        _place(given)
        os.chdir(f"{BASE}/work")
        os.umask(0o022)
        # Python or the keeper ignores these, and an ignored signal stays ignored in the program that follows.
        for signal_ in (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(signal_, signal.SIG_DFL)
        _become_nobody(config)
        os.execvpe(config["argv"][0], config["argv"], config["env"])  # noqa: S606 - no shell, on purpose
    except BaseException as error:  # noqa: BLE001 - this fork must not run on after any error
        os.write(2, f"cannot start {config['argv'][0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _place(given: dict[str, int]) -> None:
    """Move each descriptor to its number and close all others, first out of the way of the target numbers."""
    sources = {"stdin": os.open("/dev/null", os.O_RDONLY), **given}
    moved = {name: fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for name, descriptor in sources.items()}
    os.closerange(0, 64)
    for name, descriptor in moved.items():
        os.dup2(descriptor, _PLACES[name])
    os.closerange(SECRET_OUT + 1, _HIGHEST_DESCRIPTOR)


def _become_nobody(config: Config) -> None:
    """Set limits, drop capabilities and privileges, then load the system call filter. The order matters."""
    os.setpriority(os.PRIO_PROCESS, 0, _BEHIND)
    for what, soft, hard in _limits(config):
        resource.setrlimit(what, (soft, hard))
    capability = 0
    # Until the kernel knows no further one: newer kernels have more than this was written for.
    while prctl(PR_CAPBSET_DROP, capability) == 0:
        capability += 1
    if config["uid"] is not None:
        # Groups before the user: afterwards the right to change them is gone.
        os.setgroups([])
        os.setresgid(config["uid"], config["uid"], config["uid"])
        os.setresuid(config["uid"], config["uid"], config["uid"])
    # Without it the kernel takes a filter from root only, and a setuid program could gain rights.
    checked(prctl(PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
    steps = ctypes.create_string_buffer(config["filter"], len(config["filter"]))
    program = struct.pack("HP", len(config["filter"]) // 8, ctypes.addressof(steps))
    checked(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program), "seccomp")


def _limits(config: Config) -> tuple[tuple[int, int, int], ...]:
    memory, disk = config["memory_bytes"], config["disk_bytes"]
    address_space = 2 * memory + (256 << 20)
    processes = config["processes"] + _OURS
    return (
        (resource.RLIMIT_AS, address_space, address_space),
        (resource.RLIMIT_CPU, config["cpu_seconds"], config["cpu_seconds"] + 1),
        (resource.RLIMIT_FSIZE, disk, disk),
        (resource.RLIMIT_NOFILE, 256, 256),
        (resource.RLIMIT_NPROC, processes, processes),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_CORE, _NO_CORE, _NO_CORE),
    )
