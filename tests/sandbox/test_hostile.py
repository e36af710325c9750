"""A script that wants out: other ways to a network, other processes, the kernel, and what its results could smuggle."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.seccomp import MACHINES

OUT = "/sandbox/out"
FAMILIES = {"netlink": 16, "vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31, "xdp": 44, "tipc": 30, "can": 29}
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall({call}), ctypes.get_errno())
"""
# By number, so that a call without a name in the C library is tried too: on x86_64, on aarch64, and its arguments.
NUMBERS = {
    "keyctl": (250, 219, "0, -3, 1"),
    "add_key": (248, 217, "b'user', b'x', b'y', 1, -3"),
    "bpf": (321, 280, "0, 0, 0"),
    "io_uring_setup": (425, 425, "1, 0"),
    "setns": (308, 268, "3, 0"),
    "move_mount": (429, 429, "-1, b'', -1, b'', 0"),
    "open_tree": (428, 428, "-100, b'/', 1"),
    "open_by_handle_at": (304, 265, "0, 0, 0"),
    "process_vm_readv": (310, 270, "1, 0, 0, 0, 0, 0"),
    "pidfd_getfd": (438, 438, "0, 0, 0"),
    "perf_event_open": (298, 241, "0, 0, -1, -1, 0"),
    "userfaultfd": (323, 282, "0"),
    "init_module": (175, 105, "0, 0, 0"),
    "kexec_load": (246, 104, "0, 0, 0, 0"),
    "syslog": (103, 116, "3, 0, 0"),
    "settimeofday": (164, 170, "0, 0"),
    "ptrace": (101, 117, "0, 0, 0, 0"),
    "vmsplice": (278, 75, "1, 0, 0, 0"),
}
MACHINE = platform.machine()
PLACE = {"x86_64": 0, "aarch64": 1}[MACHINE]  # on any other nothing runs
CALLS = {name: f"{numbers[PLACE]}, {arguments}" for name, (*numbers, arguments) in NUMBERS.items()}
CALLS |= {"x32": "0x40000000 + 39"} if MACHINE == "x86_64" else {}


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host, of our own user, that nobody inside may touch."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_socket_family_that_may_know_no_namespace_is_refused(python: Any, family: int) -> None:
    result = python(f"import socket; socket.socket({family}, socket.SOCK_RAW)")
    assert "Address family not supported" in result.stderr


def test_abstract_unix_socket_of_the_host_is_not_there(python: Any) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0silas-hostile")
        server.listen()
        result = python("import socket; socket.socket(socket.AF_UNIX).connect('\\0silas-hostile')")
    assert "Connection refused" in result.stderr


def test_socketpair_works_for_ordinary_programs(python: Any) -> None:
    source = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))"
    assert python(source).stdout == "b'x'\n"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_system_call_is_refused(python: Any, call: str) -> None:
    assert python(CALL.format(call=call)).stdout == "-1 1\n"


@pytest.mark.parametrize("name", ["CLONE_NEWUSER", "CLONE_NEWNS", "CLONE_NEWNET", "CLONE_NEWPID"])
def test_namespace_by_clone_is_refused(python: Any, name: str) -> None:
    clone = MACHINES[MACHINE].clone
    flag = {"CLONE_NEWUSER": 1 << 28, "CLONE_NEWNS": 1 << 17, "CLONE_NEWNET": 1 << 30, "CLONE_NEWPID": 1 << 29}[name]
    source = f"import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.syscall({clone}, {flag} | 17, 0, 0, 0, 0))"
    assert python(source).stdout == "-1\n"


def test_namespace_by_tool_is_refused(python: Any) -> None:
    source = "import subprocess; print(subprocess.run(['unshare', '--user', '--map-root-user', 'true']).returncode)"
    assert python(source).stdout == "1\n"


@pytest.mark.parametrize("request_", ["0x5412", "0x541C"], ids=["TIOCSTI", "TIOCLINUX"])
def test_keys_cannot_be_pressed_in_a_terminal(python: Any, request_: str) -> None:
    source = f"import fcntl\ntry: fcntl.ioctl(1, {request_}, b'x')\nexcept OSError as e: print(e.errno)"
    assert python(source).stdout == "1\n"


def test_there_is_no_terminal(python: Any) -> None:
    assert "No such file" in python("open('/dev/tty')").stderr


@pytest.mark.parametrize("device", ["null", "zero", "full", "random", "urandom"])
def test_harmless_device_can_be_opened(python: Any, device: str) -> None:
    assert python(f"open('/dev/{device}')").ok


def test_nothing_else_is_a_device(python: Any) -> None:
    found = python("import os; print(*sorted(os.listdir('/dev')))").stdout
    assert found == "fd full null random urandom zero\n"


def test_host_process_cannot_be_signalled(python: Any, bystander: subprocess.Popen[bytes]) -> None:
    source = f"""
import os
for number in ({bystander.pid}, {os.getpid()}):
    try: os.kill(number, 9)
    except OSError: pass
os.kill(-1, 9)
"""
    python(source)
    assert bystander.poll() is None


def test_whoever_runs_the_sandbox_is_not_seen(python: Any) -> None:
    source = "import os; print(os.getppid(), any(os.path.exists(f'/proc/{n}') for n in range(10, 70000)))"
    assert python(source).stdout == "0 False\n"


def test_reaper_and_holder_cannot_be_read_or_written(python: Any) -> None:
    """They stand outside of the limits, so nothing inside may become one of them."""
    source = """
import os
mine = os.getpid()
for number in range(1, mine):
    for name in ("mem", "environ", "fd/0", "root/etc", "cwd/etc", "ns/mnt"):
        try:
            os.close(os.open(f"/proc/{number}/{name}", os.O_RDONLY | os.O_NONBLOCK))
            print("opened", number, name)
        except OSError:
            pass
"""
    assert python(source).stdout == ""


@pytest.mark.parametrize("path", ["sys/kernel/hostname", "sysrq-trigger", "sys/kernel/core_pattern"])
def test_kernel_settings_cannot_be_written(python: Any, path: str) -> None:
    assert python(f"open('/proc/{path}', 'w')").exit_code == 1


def test_control_groups_are_not_there(python: Any) -> None:
    assert python("import os; print(os.path.exists('/sys/fs/cgroup'))").stdout == "False\n"


def test_own_control_group_is_named_without_the_hosts(python: Any) -> None:
    paths = {line.split(":")[2] for line in python("print(open('/proc/self/cgroup').read())").stdout.split()}
    assert paths <= {"/"}


def test_devices_cannot_be_made(python: Any) -> None:
    source = f"import os; os.mknod('{OUT}/null', 0o20666, os.makedev(1, 3))"
    assert "Operation not permitted" in python(source).stderr


@pytest.mark.parametrize("target", ["/usr/bin/env", "/sandbox/data/seen.txt", "/proc/self/environ"])
def test_hard_link_to_what_is_not_ours_is_refused(python: Any, target: str) -> None:
    result = python(f"import os; os.link({target!r}, '{OUT}/link')", read_only={"data": {"seen.txt": b"x"}})
    assert result.exit_code == 1
    assert result.artifacts == {}


def test_hard_link_among_own_files_is_just_the_file(python: Any) -> None:
    source = f"import os; open('a', 'w').write('1'); os.link('a', '{OUT}/a'); os.link('a', '{OUT}/b')"
    assert python(source).artifacts == {"a": b"1", "b": b"1"}


@pytest.mark.parametrize("name", ["a\\nb", "a\\rb", "a\\x1bb", "\\u202eexe.txt", "a\\x00b"[:1] + "\\tb"])
def test_name_that_would_write_over_a_page_is_skipped(python: Any, name: str) -> None:
    assert python(f"open('{OUT}/{name}', 'w').close(); open('{OUT}/ok', 'w').close()").artifacts == {"ok": b""}


def test_directory_that_cannot_be_read_does_not_stop_the_rest(python: Any) -> None:
    source = f"import os; os.mkdir('{OUT}/d', 0); open('{OUT}/ok', 'w').close()"
    assert python(source).artifacts == {"ok": b""}


def test_tree_of_directories_without_files_is_bounded(python: Any) -> None:
    source = f"import os\nfor i in range(3000): os.mkdir(f'{OUT}/{{i}}')"
    assert python(source).reason == "artifact_limit"


def test_sixty_four_megabytes_of_output_end_with_the_limit(python: Any) -> None:
    result = python("import os\nfor _ in range(64): os.write(1, bytes(1 << 20))", output_bytes=100_000)
    assert result.reason == "output_limit"
    assert len(result.stdout) == 100_000


def test_file_of_a_gigabyte_is_refused(python: Any) -> None:
    source = (
        "import os\nf = os.open('big', os.O_CREAT | os.O_WRONLY)\nfor _ in range(1024): os.write(f, bytes(1 << 20))"
    )
    result = python(source)
    assert result.reason == "disk_limit" or "File too large" in result.stderr or "No space left" in result.stderr


def test_sparse_file_of_a_gigabyte_is_refused(python: Any) -> None:
    assert "File too large" in python(f"open('{OUT}/big', 'wb').truncate(1 << 30)").stderr


def test_sparse_file_of_a_gigabyte_by_a_program_is_a_disk_limit(python: Any) -> None:
    source = f"import os; os.execvp('truncate', ['truncate', '--size', '1G', '{OUT}/big'])"
    result = python(source)
    assert result.reason == "disk_limit" or "File too large" in result.stderr


def test_shared_memory_that_nobody_is_charged_for_is_refused(python: Any) -> None:
    assert "Operation not permitted" in python("import mmap; mmap.mmap(-1, 1 << 20)").stderr


def test_shared_memory_of_a_device_counts(python: Any) -> None:
    source = """
import mmap, os, time
for _ in range(4):
    if os.fork() == 0:
        held = mmap.mmap(os.open("/dev/zero", os.O_RDWR), 60 << 20)
        for at in range(0, 60 << 20, 4096): held[at] = 1
        time.sleep(20)
time.sleep(20)
"""
    result = python(source, memory_mb=96)
    assert result.reason == "memory_limit" or "Error" in result.stderr


def test_processor_time_of_all_processes_is_summed(python: Any) -> None:
    source = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    assert python(source, cpu_seconds=2, timeout_seconds=60).reason == "cpu_limit"


def test_processor_time_of_the_dead_counts(python: Any) -> None:
    source = """
import os, time
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.2
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
"""
    assert python(source, cpu_seconds=1, timeout_seconds=60).reason == "cpu_limit"


def test_script_that_ignores_sigterm_is_over_at_the_timeout(python: Any) -> None:
    source = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    assert python(source, timeout_seconds=0.5).reason == "timeout"


def test_bomb_with_a_clock_writes_nothing_after_the_run(python: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    source = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1)
        open("/sandbox/data/late", "w").write("boom")
    os._exit(0)
"""
    python(source, read_only={"data": tmp_path})
    time.sleep(1.5)
    assert list(tmp_path.iterdir()) == []


def test_everything_that_can_be_known_holds_no_secret(python: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that zips up all it can read: environments, command lines, mounts."""
    monkeypatch.setenv("SILAS_SIGNING_KEY", "very-secret-value")
    source = f"""
import glob, zipfile
with zipfile.ZipFile("{OUT}/loot.zip", "w", compression=0) as loot:
    for path in [*glob.glob("/proc/*/environ"), *glob.glob("/proc/*/cmdline"), *glob.glob("/proc/self/*")]:
        try: loot.writestr(path, open(path, "rb").read(100_000))
        except (OSError, ValueError): pass
"""
    result = python(source)
    assert result.artifacts["loot.zip"]
    assert b"very-secret-value" not in result.artifacts["loot.zip"]


def test_descriptor_left_open_by_us_is_not_inherited_by_the_next_run(python: Any) -> None:
    held = [os.open("/etc/hostname", os.O_RDONLY) for _ in range(20)]
    for descriptor in held:
        os.set_inheritable(descriptor, True)
    try:
        assert python("import os; print(len(os.listdir('/proc/self/fd')))").stdout == "4\n"
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_orphans_are_collected_and_count_for_nothing(python: Any) -> None:
    source = """
import os, time
for _ in range(100):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
    time.sleep(0.002)
"""
    assert python(source, processes=20).ok
