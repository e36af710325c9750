"""What a hostile script can see and reach: nothing of the host, nobody else, no network."""

import os
import socket
from pathlib import Path

import pytest

from sandbox import SandboxSpec, SandboxUnavailable, run
from sandbox.runner import run_on

ESCALATE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.{call}, ctypes.get_errno())
"""


def test_network_connect_to_host_listener_fails(python):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = python(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert result.exit_code == 1
    assert "unreachable" in result.stderr or "refused" in result.stderr


def test_network_outside_address_is_unreachable(python):
    result = python("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))")
    assert "Network is unreachable" in result.stderr


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/shadow", "/home", "/var", str(Path(__file__).resolve())])
def test_host_path_is_not_there(python, path):
    assert python(f"import os; print(os.path.exists({path!r}))").stdout == "False\n"


def test_host_environment_is_not_inherited(python, monkeypatch):
    monkeypatch.setenv("SILAS_SIGNING_KEY", "very-secret")
    result = python("import os; print(sorted(os.environ))")
    assert result.stdout == "['HOME', 'LANG', 'PATH', 'TMPDIR']\n"


def test_host_environment_of_process_one_holds_no_secret(python, monkeypatch):
    monkeypatch.setenv("SILAS_SIGNING_KEY", "very-secret")
    result = python(
        "import os\nfor p in ('1', 'self'):\n  try: print(open(f'/proc/{p}/environ').read())\n  except OSError: pass"
    )
    assert "very-secret" not in result.stdout


def test_process_list_holds_only_the_sandbox(python):
    source = "import glob\nfor path in glob.glob('/proc/[0-9]*/comm'): print(open(path).read().strip()[:6])"
    assert set(python(source).stdout.split()) <= {"bwrap", "cat", "python"}


def test_capabilities_are_empty(python):
    result = python("print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapBnd'))])")
    assert "'0000000000000000'" in result.stdout.split(",")[0]


def test_user_as_root_is_nobody_on_the_host(python, isolation):
    if isolation.user_namespace:
        assert python("print(open('/proc/self/uid_map').read().split()[2])").stdout == "1\n"
    else:
        assert python("import os; print(os.getuid() > 1_000_000_000)").stdout == "True\n"


@pytest.mark.parametrize(
    "call",
    ["unshare(0x10000000)", "unshare(0x20000)", "ptrace(16, 1, 0, 0)", "mount(b'x', b'/tmp', b'tmpfs', 0, 0)"]
    + ["chroot(b'/tmp')", "memfd_create(b'x', 0)", "shmget(0, 1 << 20, 0o1600)", "umount2(b'/proc', 2)"],
)
def test_system_call_that_widens_the_sandbox_is_refused(python, call):
    assert python(ESCALATE.format(call=call)).stdout == "-1 1\n"


def test_process_one_cannot_be_signalled(python):
    source = """
import os
for number in (2, 9, 15, 17):
    try:
        os.kill(1, number)
    except PermissionError:
        pass
print("still")
"""
    result = python(source)
    assert result.exit_code == 0
    assert result.stdout == "still\n"
    assert result.reason == ""


def test_process_one_memory_and_descriptors_are_closed(python):
    source = """
import os
for path in ["mem", "environ", "root/etc", "cwd/etc", *(f"fd/{number}" for number in range(20))]:
    try:
        os.close(os.open(f"/proc/1/{path}", os.O_RDONLY | os.O_NONBLOCK))
        print("opened", path)
    except OSError:
        pass
"""
    assert python(source).stdout == ""


def test_descriptors_beyond_output_are_not_inherited(python):
    with open(__file__, "rb") as handle:
        os.set_inheritable(handle.fileno(), True)
        result = python("import os; fds = os.listdir('/proc/self/fd'); print(sorted(map(int, fds))[:3], len(fds))")
    assert result.stdout == "[0, 1, 2] 4\n"  # the fourth is the listing itself


def test_standard_input_is_empty(python):
    assert python("import sys; print(repr(sys.stdin.read()))").stdout == "''\n"


def test_standard_input_is_what_was_given_and_then_ends(python):
    given = b"one line\n" + b"x" * 200_000
    source = "import sys; print(sys.stdin.readline().strip(), len(sys.stdin.read()), sys.stdin.read() == '')"
    assert python(source, stdin=given).stdout == "one line 200000 True\n"


def test_standard_input_that_nobody_reads_holds_nobody_up(python):
    assert python("print('done')", stdin=b"x" * 200_000).stdout == "done\n"


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/etc/x", "/dev/x", "/sandbox/data/x", "/sandbox/data/seen.txt"])
def test_write_outside_the_writable_area_fails(python, path, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "seen.txt").write_text("kept")
    result = python(f"open({path!r}, 'w').write('x')", read_only={"data": tmp_path})
    assert result.exit_code == 1
    assert (tmp_path / "seen.txt").read_text() == "kept"


def test_read_only_mount_cannot_be_made_writable(python, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "seen.txt").write_text("kept")
    result = python("import os; os.chmod('/sandbox/data/seen.txt', 0o777)", read_only={"data": tmp_path})
    assert result.exit_code == 1
    assert "Error" in result.stderr


def test_read_only_mount_from_contents_is_readable(python):
    result = python("print(open('/sandbox/data/a/b.txt').read())", read_only={"data": {"a/b.txt": b"hello"}})
    assert result.stdout == "hello\n"


def test_read_only_mount_from_contents_leaves_nothing_behind(python, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    python("pass", read_only={"data": {"a.txt": b"hello"}})
    assert list(tmp_path.iterdir()) == []


def test_work_file_is_writable_in_a_subdirectory(python):
    result = python("open('in/x.txt', 'a').write('+'); print(open('in/x.txt').read())", work={"in/x.txt": b"1"})
    assert result.stdout == "1+\n"


def test_two_runs_share_no_file(python):
    python("open('/sandbox/work/left', 'w').write('x')")
    assert python("import os; print(os.listdir('/sandbox/work'))").stdout == "[]\n"


def test_missing_command_reports_without_running(isolation):
    result = run_on(isolation, SandboxSpec(["no-such-program"]))
    assert result.exit_code == 127
    assert "cannot start no-such-program" in result.stderr


def test_mount_that_is_missing_refuses(tmp_path):
    with pytest.raises(SandboxUnavailable, match="not a directory"):
        run(SandboxSpec(["true"], read_only={"data": tmp_path / "gone"}))


HIDES = {"data": {"seen.txt": b"1", "checks/secret.txt": b"2", "checks/deep/er.txt": b"3"}}
LOOK = "import os; print([name for _, _, names in os.walk('/sandbox/data') for name in names])"


def test_hidden_directory_is_empty(python):
    assert python(LOOK, read_only=HIDES, hidden=["data/checks"]).stdout == "['seen.txt']\n"


def test_hidden_directory_of_the_host_is_empty_too(python, tmp_path):
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "secret.txt").write_text("2")
    for path in (tmp_path, tmp_path / "checks"):
        path.chmod(0o755)
    assert python(LOOK, read_only={"data": tmp_path}, hidden=["data/checks"]).stdout == "[]\n"


def test_hidden_directory_takes_nothing(python):
    result = python("open('/sandbox/data/checks/x', 'w')", read_only=HIDES, hidden=["data/checks"])
    assert result.exit_code == 1


def test_hidden_directory_that_is_not_there_changes_nothing(python):
    assert python(LOOK, read_only={"data": {"a": b""}}, hidden=["data/checks"]).stdout == "['a']\n"
