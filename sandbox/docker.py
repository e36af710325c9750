"""Run in a container, when the operator chose `docker`: command line arguments, and a relay for the one output.

The engine makes the namespaces and the root; inside, `keeper.contained` does the overseer's work. The engine must run
on this machine, because mounts are named by paths of this host. If the engine does not answer, the run is refused.
"""

import contextlib
import os
import secrets
import select
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sandbox.backends import Docker, Plan
from sandbox.keeper.contained import FRAME
from sandbox.keeper.report import packed, write_all
from sandbox.spec import SandboxSpec, SandboxUnavailable

_KEEPER = str(Path(__file__).resolve().parent / "keeper")
_MAIN = "import sys; sys.path.insert(0, '/opt'); from keeper.contained import main; main()"
_ANSWER_SECONDS = 10.0
_GRACE_SECONDS = 3.0
_HEAD = struct.calcsize(FRAME)
# Besides the command's own: process 1, and what the sum may run over between two looks.
_SPARE_PROCESSES, _SPARE_MEMORY = 8, 64 << 20


def require_engine() -> None:
    """Raises SandboxUnavailable with the client's error."""
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False)
    except FileNotFoundError:
        raise SandboxUnavailable("docker was chosen for sandboxes, and there is no docker client here") from None
    except subprocess.TimeoutExpired:
        raise SandboxUnavailable("docker was chosen for sandboxes, and its engine does not answer") from None
    if answer.returncode != 0:
        reason = (answer.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        raise SandboxUnavailable(f"docker was chosen for sandboxes, and its engine does not answer: {reason}")


def arguments(backend: Docker, plan: Plan, spec: SandboxSpec, *, name: str) -> list[str]:
    """The whole command line; no shell reads it."""
    memory = str((spec.memory_mb << 20) + plan.disk_bytes + _SPARE_MEMORY)
    # The same for both, so that no swap is added to the memory.
    limits = ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(spec.processes + _SPARE_PROCESSES)]
    walls = ["--network", "none", "--ipc", "none", "--read-only", "--cap-drop", "ALL"]
    walls += ["--security-opt", "no-new-privileges", "--user", "65534:65534", "--ulimit", "core=1"]
    options = f"rw,nosuid,nodev,exec,size={plan.disk_bytes},nr_inodes=20000,mode=1777"
    mounts = ["--tmpfs", f"/sandbox:{options}", "--mount", _mount(_KEEPER, "/opt/keeper")]
    for source, target in plan.mounts:
        mounts += ["--mount", _mount(source, target)]
    for target in plan.hidden:
        mounts += ["--tmpfs", f"{target}:ro,size=4096,mode=0555"]
    # `--pull never`: a run must not wait for a registry, or run an image that its operator has not fetched.
    run = ["docker", "run", "--rm", "--interactive", "--name", name, "--pull", "never", "--log-driver", "none"]
    start = ["--workdir", "/", "--entrypoint", "python3", backend.image, "-I", "-S", "-B", "-c", _MAIN]
    return [*run, *limits, *walls, *mounts, *start]


def _mount(source: str, target: str) -> str:
    # A comma would begin another option of the mount.
    if "," in source or "," in target:
        raise SandboxUnavailable("docker cannot mount a path with a comma in it")
    return f"type=bind,source={source},target={target},readonly"


def launch(backend: Docker, plan: Plan, spec: SandboxSpec, config: bytes, descriptors: Sequence[int]) -> None:
    """Start the container; a thread relays its output to stdout, stderr and report until it ends."""
    *targets, control = (os.dup(descriptor) for descriptor in descriptors)
    name = f"silas-{secrets.token_hex(8)}"
    pipe: Any = subprocess.PIPE
    process = subprocess.Popen(
        arguments(backend, plan, spec, name=name), stdin=pipe, stdout=pipe, stderr=targets[1], cwd="/"
    )
    relay = _Relay(process, dict(zip((b"o", b"e", b"r"), targets, strict=True)), control, name)
    threading.Thread(target=relay.run, args=(config,), daemon=True).start()


class _Relay:
    def __init__(self, process: "subprocess.Popen[bytes]", targets: dict[bytes, int], control: int, name: str) -> None:
        self.process, self.targets, self.control, self.name = process, targets, control, name

    def run(self, config: bytes) -> None:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(packed(config))
            self.process.stdin.flush()
            self._hand_on(self.process.stdout.fileno())
        except OSError:
            pass  # the caller or the container has ended: either way this run is over
        finally:
            self._end()

    def _hand_on(self, source: int) -> None:
        """Relay frames. Once `control` is closed, tell the container to stop and give it a grace period."""
        poller = select.poll()
        poller.register(source, select.POLLIN)
        poller.register(self.control, select.POLLIN | select.POLLHUP)
        held, wait = b"", None
        while True:
            ready = {descriptor for descriptor, _ in poller.poll(wait)}
            if not ready:
                return
            if self.control in ready:
                poller.unregister(self.control)
                self._close_input()
                wait = _GRACE_SECONDS * 1000
            if source in ready:
                data = os.read(source, 65_536)
                if not data:
                    return
                held = self._deliver(held + data)

    def _deliver(self, held: bytes) -> bytes:
        while len(held) >= _HEAD:
            kind, size = struct.unpack_from(FRAME, held)
            if len(held) < _HEAD + size:
                break
            write_all(self.targets[kind], held[_HEAD : _HEAD + size])
            held = held[_HEAD + size :]
        return held

    def _close_input(self) -> None:
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _end(self) -> None:
        """Ensure that the container is gone before the last target closes: the caller waits for that."""
        self._close_input()
        try:
            self.process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            # By its name: the client's end does not end the container.
            kill = ["docker", "kill", self.name]
            subprocess.run(kill, capture_output=True, timeout=_ANSWER_SECONDS, check=False)
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        for descriptor in (*self.targets.values(), self.control):
            os.close(descriptor)
