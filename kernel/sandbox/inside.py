"""Process 1 of a sandbox. Builds what the backend left open, runs one command under limits, reports, dies.

Runs as `python3 -I -S -c <this file> REPORT_FD CONTROL_FD` in fresh namespaces, with the run's configuration on fd 0.
Only the standard library's light modules, because every run pays for the imports. The command never shares a descriptor
with this process, and everything still alive is killed before a file is read. Never imported; `runner` reads its text.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import signal
import stat
import struct
import sys
import time

# No `typing` at run time: its import costs more than the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Config = dict[str, Any]

LIBC = ctypes.CDLL(None, use_errno=True)
TICK_SECONDS = 0.02
PAGE = os.sysconf("SC_PAGE_SIZE")
BASE = "/sandbox"
SCAFFOLD = "/tmp"  # noqa: S108 - only covered by the new root, never written to
MAX_INODES, MAX_DEPTH = 20_000, 8
OURS = 4  # where we are not root, the tool outside and this process count for the command's user too
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MNT_DETACH = 2, 4, 8, 4096, 16384, 2
SYS_MOUNT_SETATTR, AT_RECURSIVE, ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 442, 0x8000, 1, 2, 4
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 4, 24, 22, 38, 2


def checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def refuse_outside(host_pid_namespace: str) -> None:
    """`kill(-1)` below is only right inside our own process namespace."""
    if os.getpid() != 1 or os.readlink("/proc/self/ns/pid") == host_pid_namespace:
        raise RuntimeError("not process 1 of a new process namespace")


# --- the root file system, for a backend that gives namespaces only ---


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str = "") -> None:
    encoded = [None if part is None else os.fsencode(part) for part in (source, target, kind)]
    checked(LIBC.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {target}")


def restrict(target: str, attributes: int, recursive: bool = True) -> None:
    """mount_setattr(2): make a mount, and what is mounted below it, read-only, nosuid, nodev."""
    attr = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    result = LIBC.syscall(SYS_MOUNT_SETATTR, -100, os.fsencode(target), flags, attr, len(attr))
    checked(result, f"mount_setattr {target}")


def bind(source: str, target: str, writable_device: bool = False) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    mount(source, target, flags=MS_BIND | MS_REC)
    if not writable_device:
        restrict(target, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)


def build_root(root: Config) -> None:
    """A fresh root: read-only binds, five devices, its own /proc, one sized tmpfs; the host's root is detached."""
    mount("tmpfs", SCAFFOLD, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755")
    os.makedirs(f"{SCAFFOLD}/host")
    checked(LIBC.pivot_root(SCAFFOLD.encode(), f"{SCAFFOLD}/host".encode()), "pivot_root")
    os.chdir("/")
    os.umask(0o022)
    for target, link in root["links"]:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(link, target)
    for source, target in root["binds"]:
        bind("/host" + source, target)
    for device in root["devices"]:
        bind("/host" + device, device, writable_device=True)
    os.makedirs("/proc", exist_ok=True)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    os.makedirs(BASE)
    mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, f"size={root['disk_bytes']},nr_inodes={MAX_INODES},mode=755")
    for source, target in root["mounts"]:
        bind("/host" + source, target)
    checked(LIBC.umount2(b"/host", MNT_DETACH), "umount host")
    os.rmdir("/host")
    restrict("/", ATTR_RDONLY, recursive=False)


# --- the command ---


def stage(config: Config) -> int:
    """Lay out the writable part; returns a descriptor of out/, opened before anything untrusted runs."""
    owner = config["uid"] if config["uid"] is not None else -1
    for name in ("work", "out", "tmp"):
        os.mkdir(f"{BASE}/{name}")
        os.chown(f"{BASE}/{name}", owner, owner)
    for name, content in config["work"]:
        path = f"{BASE}/work/{name}"
        make_parents(path, owner)
        with open(path, "wb") as handle:
            handle.write(content)
        os.chown(path, owner, owner)
    return os.open(f"{BASE}/out", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def make_parents(path: str, owner: int) -> None:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        make_parents(parent, owner)
        os.mkdir(parent)
        os.chown(parent, owner, owner)


def become_nobody(config: Config) -> None:
    """Limits, no capabilities, no way to gain any, then the system call filter. The order matters."""
    memory, disk = config["memory_bytes"], config["disk_bytes"]
    address_space = 2 * memory + (256 << 20)
    for what, soft, hard in (
        (resource.RLIMIT_AS, address_space, address_space),
        (resource.RLIMIT_CPU, config["cpu_seconds"], config["cpu_seconds"] + 1),
        (resource.RLIMIT_FSIZE, disk, disk),
        (resource.RLIMIT_NOFILE, 256, 256),
        (resource.RLIMIT_NPROC, config["processes"] + OURS, config["processes"] + OURS),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        resource.setrlimit(what, (soft, hard))
    for capability in range(64):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if config["uid"] is not None:
        os.setgroups([])
        os.setresgid(config["uid"], config["uid"], config["uid"])
        os.setresuid(config["uid"], config["uid"], config["uid"])
    checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    steps = ctypes.create_string_buffer(config["filter"], len(config["filter"]))
    program = struct.pack("HP", len(config["filter"]) // 8, ctypes.addressof(steps))
    checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0), "seccomp")


def execute(config: Config) -> NoReturn:
    """In the forked child: never returns."""
    try:
        os.setsid()
        os.closerange(3, 65536)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.chdir(f"{BASE}/work")
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        become_nobody(config)
        os.execvpe(config["argv"][0], config["argv"], config["env"])  # noqa: S606 - no shell, on purpose
    except BaseException as error:  # noqa: BLE001 - whatever went wrong, this copy must not run on
        os.write(2, f"cannot start {config['argv'][0]}: {error}\n".encode())
    finally:
        os._exit(127)


class Watch:
    """What is going on in the sandbox right now, against the limits no rlimit covers."""

    def __init__(self, config: Config) -> None:
        self.memory = config["memory_bytes"]
        self.processes = config["processes"]
        self.deadline = time.monotonic() + config["timeout_seconds"]

    def verdict(self) -> str:
        if time.monotonic() >= self.deadline:
            return "timeout"
        resident, count = self.usage()
        if count >= self.processes:
            return "process_limit"
        if resident > self.memory:
            return "memory_limit"
        space = os.statvfs(BASE)
        return "disk_limit" if space.f_files - space.f_ffree > MAX_INODES - 100 else ""

    def usage(self) -> tuple[int, int]:
        resident = count = 0
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or entry == "1":
                continue
            try:
                with open(f"/proc/{entry}/statm", "rb") as handle:
                    _, pages, shared = handle.read().split()[:3]
            except OSError:
                continue
            count += 1
            resident += max(int(pages) - int(shared), 0) * PAGE
        return resident, count


def supervise(config: Config, control: int) -> tuple[str, int | None]:
    """Run the command to its end or to a limit; returns (reason, exit code or None)."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        execute(config)
    for descriptor in (0, 1, 2):  # from here on the output pipes belong to the command alone
        os.close(descriptor)
    poller, watch = select.poll(), Watch(config)
    poller.register(wake_read, select.POLLIN)
    poller.register(control, select.POLLIN | select.POLLHUP)
    while True:
        ended = reap(child)
        if ended:
            return judge(ended, config)
        reason = watch.verdict()
        if reason:
            return reason, None
        for descriptor, _ in poller.poll(TICK_SECONDS * 1000):
            if descriptor == control:
                return "stopped", None
            os.read(wake_read, 4096)


def reap(child: int) -> tuple[int, resource.struct_rusage] | None:
    """Collect whatever has died; the command's own (status, usage) when it is among them."""
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status, usage
        if pid == 0:
            return None


def judge(ended: tuple[int, resource.struct_rusage], config: Config) -> tuple[str, int]:
    status, usage = ended
    code = os.waitstatus_to_exitcode(status)
    space = os.statvfs(BASE)
    if code in (-signal.SIGXCPU, -signal.SIGKILL) and usage.ru_utime + usage.ru_stime >= config["cpu_seconds"] - 0.1:
        return "cpu_limit", code
    if code != 0 and (space.f_bavail == 0 or space.f_ffree == 0 or code == -signal.SIGXFSZ):
        return "disk_limit", code
    return "", code


def kill_everyone() -> None:
    """Until this process is alone: whatever was daemonised, re-parented or still forking."""
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ProcessLookupError, ChildProcessError):
            return


# --- the result ---


class TooMuchLeft(Exception):
    """More was left under out/ than the run may hand back."""


class Collector:
    """Regular files below one directory, by descriptor: no link is followed, nothing special is opened for reading."""

    def __init__(self, config: Config) -> None:
        self.files_left = config["artifact_files"]
        self.bytes_left = config["disk_bytes"]
        self.entries_left = 10 * config["artifact_files"]
        self.found: list[bytes] = []

    def walk(self, directory: int, prefix: str = "", depth: int = 0) -> None:
        for name in sorted(os.listdir(directory)):
            self.entries_left -= 1
            if self.entries_left < 0 or depth > MAX_DEPTH:
                raise TooMuchLeft
            try:
                name.encode()
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
            except (OSError, UnicodeEncodeError):
                continue  # a link, a socket, something unreadable, or a name no row could hold
            try:
                self.take(descriptor, prefix + name, depth)
            finally:
                os.close(descriptor)

    def take(self, descriptor: int, name: str, depth: int) -> None:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            self.walk(descriptor, name + "/", depth + 1)
        elif stat.S_ISREG(info.st_mode):
            self.files_left -= 1
            self.bytes_left -= info.st_size
            if self.files_left < 0 or self.bytes_left < 0:
                raise TooMuchLeft
            with open(descriptor, "rb", closefd=False) as handle:
                self.found += [name.encode(), handle.read(info.st_size)]


def collect(directory: int, config: Config) -> tuple[str, list[bytes]]:
    collector = Collector(config)
    try:
        collector.walk(directory)
    except TooMuchLeft:
        return "artifact_limit", []
    return "", collector.found


def send(report: int, chunks: list[bytes]) -> None:
    data = b"".join(struct.pack("!Q", len(chunk)) + chunk for chunk in chunks)
    view = memoryview(data)
    while view:
        view = view[os.write(report, view) :]


def main() -> None:
    report, control = int(sys.argv[1]), int(sys.argv[2])
    try:
        with open(0, "rb", closefd=False) as handle:
            config = marshal.load(handle)  # noqa: S302 - written by our own runner
        refuse_outside(config["host_pid_namespace"])
        with open("/proc/self/oom_score_adj", "w") as handle:
            handle.write("1000")
        if config["root"]:
            build_root(config["root"])
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        out = stage(config)
        reason, code = supervise(config, control)
        kill_everyone()
        problem, artifacts = ("", []) if reason else collect(out, config)
        chunks = [(reason or problem).encode(), b"" if code is None else str(code).encode(), *artifacts]
    except Exception as error:  # noqa: BLE001 - the report says what it was
        chunks = [b"sandbox_failed", b"", b"detail", f"{type(error).__name__}: {error}".encode()]
    send(report, chunks)


main()
