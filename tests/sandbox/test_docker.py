"""Containers, when the operator chose them: the command line, an engine that is not there, and one that plays its part.

No engine runs where these tests run. What stands in for it honours the arguments that matter here with bubblewrap.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import Choice, Kind, SandboxResult, SandboxSpec, SandboxUnavailable, backend, configure, run
from sandbox.backends import Docker, make_plan
from sandbox.docker import arguments

ENGINE = """#!/bin/sh
if [ "$1" = version ]; then echo 99; exit 0; fi
if [ "$1" != run ]; then exit 1; fi
keeper= mounts=
for word in "$@"; do
    case "$word" in
        type=bind,*) source=${word#type=bind,source=}; target=${source#*,target=}
                     mounts="$mounts --ro-bind ${source%%,*} ${target%,readonly}" ;;
    esac
done
while [ "$1" != --entrypoint ]; do shift; done
program=$2; shift 3
exec bwrap --unshare-all --as-pid-1 --die-with-parent --clearenv --cap-drop ALL \
    --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc \
    --dev-bind /dev/null /dev/null --perms 1777 --size 67108864 --tmpfs /sandbox $mounts -- "/usr/bin/$program" "$@"
"""


@pytest.fixture
def chosen() -> Iterator[None]:
    configure(Choice(kind=Kind.DOCKER, image="registry.example/runner:1"))
    yield
    configure(Choice())


@pytest.fixture
def python(chosen: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SandboxResult]:
    engine = tmp_path / "docker"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda source, **limits: run(
        SandboxSpec(["python3", "-I", "-S", "-c", source], **{"timeout_seconds": 10, **limits})
    )


def line(**fields: object) -> str:
    spec = SandboxSpec(["true"], **fields)
    plan = make_plan(mounts={"skill": "/srv/skill"}, disk_bytes=spec.disk_mb << 20)
    return " ".join(arguments(Docker("image:1"), plan, spec, name="silas-1"))


@pytest.mark.parametrize(
    "words",
    ["--network none", "--read-only", "--cap-drop ALL", "--security-opt no-new-privileges", "--user 65534:65534"]
    + ["--ipc none", "--pull never", "--log-driver none", "--rm", "--pids-limit 72", "--ulimit core=1"]
    + ["type=bind,source=/srv/skill,target=/sandbox/skill,readonly", "size=67108864"],
)
def test_arguments_hold_the_wall(words: str) -> None:
    assert words in line()


@pytest.mark.parametrize("words", ["--privileged", "--volume", "docker.sock", "--env", "seccomp=unconfined", "--pid "])
def test_arguments_open_no_door(words: str) -> None:
    assert words not in line()


def test_arguments_bound_memory_and_swap_together() -> None:
    assert f"--memory {(512 + 64 + 64) << 20} --memory-swap {(512 + 64 + 64) << 20}" in line()


def test_arguments_hold_nothing_of_the_command() -> None:
    """What runs, its environment and its files go over standard input."""
    assert "secret" not in line(env={"WORD": "secret"}, work={"secret": b"secret"})


def test_mount_that_would_read_as_another_option_is_refused() -> None:
    spec = SandboxSpec(["true"])
    plan = make_plan(mounts={"skill": "/srv/a,target=/"}, disk_bytes=1)
    with pytest.raises(SandboxUnavailable, match="comma"):
        arguments(Docker("image:1"), plan, spec, name="silas-1")


def test_engine_that_does_not_answer_refuses(chosen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(SandboxUnavailable, match=r"does not answer|no docker client"):
        run(SandboxSpec(["true"]))


def test_machine_without_a_client_refuses(chosen: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="no docker client"):
        backend()


def test_docker_never_falls_back_to_another_backend(
    chosen: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").symlink_to(shutil.which("bwrap") or "/usr/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="docker"):
        run(SandboxSpec(["true"]))


def test_container_returns_output_and_artifacts(python: Callable[..., SandboxResult]) -> None:
    result = python(
        "import sys; print('out'); print('err', file=sys.stderr); print(open('in').read());"
        "open('/sandbox/out/a', 'w').write('1'); sys.exit(3)",
        work={"in": b"given"},
    )
    assert result.exit_code == 3
    assert result.stdout == "out\ngiven\n"
    assert result.stderr == "err\n"
    assert result.artifacts == {"a": b"1"}


def test_container_that_hangs_is_over_at_the_timeout(python: Callable[..., SandboxResult]) -> None:
    assert python("import time; time.sleep(60)", timeout_seconds=0.5).reason == "timeout"


def test_container_that_floods_is_stopped(python: Callable[..., SandboxResult]) -> None:
    result = python("while True: print('x' * 1000)", output_bytes=5000)
    assert result.reason == "output_limit"
    assert len(result.stdout) == 5000


def test_container_whose_child_stays_is_not_waited_for(python: Callable[..., SandboxResult]) -> None:
    assert python("import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(60)", timeout_seconds=5).ok


def test_container_cannot_forge_its_report(python: Callable[..., SandboxResult]) -> None:
    """The command writes to a pipe of its own, not to the stream of frames."""
    forged = "import os, struct; os.write(1, struct.pack('!cI', b'r', 4) + b'done')"
    result = python(forged)
    assert result.exit_code == 0
    assert result.reason == ""


def test_container_cannot_reach_process_one(python: Callable[..., SandboxResult]) -> None:
    source = """
import os
for name in ("mem", "fd/1", "environ"):
    try:
        os.open(f"/proc/1/{name}", os.O_RDWR)
        print(name)
    except OSError:
        pass
"""
    assert python(source).stdout == ""
