"""Process 1 of a container: oversees a run where an engine made the namespaces and the root.

Everything goes over the two pipes that an engine passes on: the configuration comes in on standard input, whose end is
the order to stop; output and report go out on standard output, in frames. It has the command's user, so it makes itself
unreadable; as process 1 it cannot be signalled from inside.
"""

from __future__ import annotations

import marshal
import os
import signal
import struct
import threading

from . import command
from .collect import collect
from .report import broken, packed, write_all
from .system import PR_SET_DUMPABLE, prctl
from .watch import Watch, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .config import Config

FRAME = "!cI"
_CHUNK = 65_536
_sending = threading.Lock()


def main() -> None:
    if os.getpid() != 1:
        raise SystemExit("only as process 1 of a container")
    # The command has the same user and could otherwise read this process's memory under /proc.
    prctl(PR_SET_DUMPABLE, 0)
    frame(b"r", packed(b"contained"))
    try:
        (size,) = struct.unpack("!Q", _read_exactly(8))
        config = marshal.loads(_read_exactly(size))  # noqa: S302 - written by our own runner
        chunks = _run(config)
    except Exception as error:  # noqa: BLE001 - the report says what it was
        chunks = broken(error)
    frame(b"r", packed(*chunks))


def _run(config: Config) -> list[bytes]:
    out = command.stage(config)
    pipes = {b"o": os.pipe(), b"e": os.pipe()}
    started = command.start(config, pipes[b"o"][1], pipes[b"e"][1], {})
    for _, write in pipes.values():
        os.close(write)
    pumps = [threading.Thread(target=_pump, args=(kind, read)) for kind, (read, _) in pipes.items()]
    for pump in pumps:
        pump.start()
    reason, ended = Watch(config, own=1).until_it_ends(started, 0)
    code = None
    if ended is not None:
        _, status, usage = os.wait4(started, 0)
        reason, code = judge(status, usage, config)
    _kill_everyone()
    for pump in pumps:
        pump.join()
    problem, artifacts = ("", []) if reason else collect(out, config)
    return [(reason or problem).encode(), b"" if code is None else str(code).encode(), *artifacts]


def _kill_everyone() -> None:
    """Until this process is alone in the container."""
    while True:
        try:
            # From process 1 this reaches everyone but itself. A fork may slip through one round, so it is repeated.
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ProcessLookupError, ChildProcessError):
            return


def _pump(kind: bytes, source: int) -> None:
    while data := os.read(source, _CHUNK):
        frame(kind, data)


def frame(kind: bytes, data: bytes) -> None:
    with _sending:
        for start in range(0, len(data), _CHUNK):
            piece = data[start : start + _CHUNK]
            write_all(1, struct.pack(FRAME, kind, len(piece)) + piece)


def _read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            raise EOFError("no configuration")
        data += piece
    return data
