"""A secret goes in by one descriptor, comes back by another one, and nowhere else: not even in disguise."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import pytest

from kernel.errors import SilasError
from sandbox import SandboxResult, SandboxSpec
from sandbox.execution import WITHHELD
from sandbox.leaks import is_leaked
from sandbox.runner import run_on
from tests.sandbox.conftest import WORKING

CANARY = "canary-7f3a/9+Zq"
SECRET = json.dumps({"access_token": CANARY, "nested": {"deep": ["other-secret"]}, "n": 7}).encode()
READ = """
import base64, json, os
def held():
    with open(int(os.environ["SILAS_SECRET_FD"]), closefd=False) as handle:
        return json.load(handle)
def hand_back(value):
    os.write(int(os.environ["SILAS_SECRET_OUT_FD"]), json.dumps(value).encode())
token = held()["access_token"]
"""


def test_secret_is_read_from_its_descriptor(python: Any) -> None:
    assert python(READ + "print(len(token))", secret=SECRET).stdout == f"{len(CANARY)}\n"


def test_secret_can_be_read_once(python: Any) -> None:
    again = "print(repr(open(f'/proc/self/fd/{os.environ[\"SILAS_SECRET_FD\"]}').read() if 0 else os.read(3, 10)))"
    assert python(READ + again, secret=SECRET).stdout == "b''\n"


def test_secret_is_not_in_arguments_environment_or_files(python: Any) -> None:
    look = """
import subprocess
found = open("/proc/self/environ").read() + open("/proc/self/cmdline").read()
for folder, _, names in os.walk("/sandbox"):
    found += "".join(open(os.path.join(folder, name), errors="replace").read() for name in names)
print(token in found)
"""
    assert python(READ + look, secret=SECRET).stdout == "False\n"


def test_new_secret_comes_back_by_its_own_way(python: Any) -> None:
    result = python(READ + "hand_back({'access_token': 'fresh-one'})", secret=SECRET)
    assert json.loads(result.secret_out) == {"access_token": "fresh-one"}
    assert result.ok is True


def test_new_secret_that_is_printed_too_is_withheld(python: Any) -> None:
    result = python(READ + "hand_back({'t': 'fresh-one'}); print('fresh-one')", secret=SECRET)
    assert result.reason == "secret_leaked"
    assert result.stdout == WITHHELD
    assert result.secret_out


def test_new_secret_survives_a_run_that_fails(python: Any) -> None:
    result = python(
        READ + "hand_back({'t': 'fresh-one'}); import time; time.sleep(60)", secret=SECRET, timeout_seconds=2
    )
    assert result.reason == "timeout"
    assert json.loads(result.secret_out) == {"t": "fresh-one"}


def test_new_secret_that_is_no_object_is_not_taken(python: Any) -> None:
    result = python(READ + "os.write(4, b'[garbage')", secret=SECRET)
    assert result.reason == "secret_malformed"
    assert result.secret_out is None


def test_new_secret_without_end_stops_the_run(python: Any) -> None:
    result = python(READ + "while True: os.write(4, b'x' * 9000)", secret=SECRET)
    assert result.reason == "output_limit"


@pytest.mark.parametrize(
    "leak",
    [
        "print(token)",
        "import sys; print(token, file=sys.stderr)",
        "raise ValueError(token)",
        "open('/sandbox/out/report.txt', 'w').write('x' * 70000 + token)",
        "open('/sandbox/out/' + token.replace('/', '_'), 'w')",
    ],
)
def test_secret_that_comes_out_fails_the_run(python: Any, leak: str) -> None:
    result = python(READ + leak, secret=SECRET)
    assert result.reason == "secret_leaked"
    assert result.artifacts == {}
    assert CANARY not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "told",
    [
        CANARY[::-1],
        CANARY.encode().hex(),
        CANARY.encode().hex().upper(),
        "%63anary"[:0] + "canary-7f3a%2F9%2BZq",
        base64.b64encode(CANARY.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + CANARY.encode()).decode(),
        base64.b64encode(b"us:" + CANARY.encode() + b" and more").decode(),
        base64.b64encode(CANARY[::-1].encode()).decode(),
        base64.encodebytes(b"x" * 50 + CANARY.encode()).decode(),
        " ".join(CANARY),
        "\n".join(CANARY.upper()),
        json.dumps({"a": CANARY}).replace("/", "/"),
    ],
)
def test_disguise_is_seen_through(told: str) -> None:
    assert is_leaked({CANARY}, [f"all is well {told} indeed".encode()])


def test_ordinary_text_is_no_leak() -> None:
    assert not is_leaked({CANARY, "pass"}, [b"canary-7f3a and 9+Zq apart, nothing p-a-s-s", b""])


def test_secret_of_another_run_is_out_of_reach_by_proc(python: Any) -> None:
    """Both at once: who looks through /proc sees its own processes alone."""
    one = SandboxSpec(
        ["python3", "-I", "-S", "-c", "import time; time.sleep(3); print(len(open(3).read()))"], secret=SECRET
    )
    results: list[SandboxResult] = []
    other = threading.Thread(target=lambda: results.append(run_on(WORKING[0], one)))
    other.start()
    look = """
import glob
held()
words = []
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        words.append(os.read(descriptor, 9999))
    except OSError:
        pass
print(b"canary" in b"".join(words))
""".replace("held()\n", "")
    mine = python("import os\n" + look, secret=b'{"mine": "another word"}')
    other.join()
    assert mine.stdout == "False\n"
    assert results[0].stdout == f"{len(SECRET)}\n"


def test_core_is_never_written_not_even_by_a_program_of_the_machine(python: Any) -> None:
    """A limit of 0 does not hold for a core that is piped to a program; 1 is taken for none at all."""
    result = python("import resource; print(resource.getrlimit(resource.RLIMIT_CORE))")
    assert result.stdout == "(1, 1)\n"


def test_process_that_crashes_with_a_secret_leaves_no_core(python: Any) -> None:
    crash = """
child = os.fork()
if child == 0:
    os.abort()
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status), os.WCOREDUMP(status), os.listdir("."))
"""
    assert python(READ + crash, secret=SECRET).stdout == "6 False []\n"


def test_run_without_a_secret_has_no_such_descriptor(python: Any) -> None:
    assert python("import os; print(os.listdir('/proc/self/fd'), 'SILAS_SECRET_FD' in os.environ)").stdout.endswith(
        "['0', '1', '2', '3'] False\n"  # 3 is the listing's own
    )


def test_secret_is_in_no_representation() -> None:
    assert CANARY not in repr(SandboxSpec(["true"], secret=SECRET)) + repr(SandboxResult(0, "", "", secret_out=SECRET))


@pytest.mark.parametrize("secret", [b"plain", b"[]", b"{" + b" " * 70_000 + b"}"])
def test_secret_that_is_no_bounded_object_is_refused(secret: bytes) -> None:
    with pytest.raises(SilasError, match="secret"):
        SandboxSpec(["true"], secret=secret)


def test_secret_as_large_as_a_pipe_arrives_whole(python: Any) -> None:
    secret = json.dumps({"access_token": "x" * 65_000}).encode()
    assert python(READ + "print(len(token))", secret=secret).stdout == "65000\n"
