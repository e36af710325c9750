"""The keeper's main loop: keep one fork ready that takes the next request, then fork again.

A request is one message of the socket on fd 0, with descriptors: configuration, output, error output, report, control,
and what the configuration names as `extras`. Only forks read it, so this process never holds anything of a run. It ends
when the process that started it ends.
"""

from __future__ import annotations

import gc
import marshal
import os
import select
import signal
import socket

from .overseer import oversee
from .system import PR_SET_PDEATHSIG, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_DESCRIPTORS = 9
_TAKEN = b"."


def main() -> None:
    requests = socket.socket(fileno=os.dup(0))
    os.dup2(1, 0)  # nothing but /dev/null is ever behind the first three
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A collection would touch every object, and each fork would copy the pages that it now shares.
    gc.disable()
    gc.freeze()
    while not _is_over(requests):
        _one_ready(requests)


def _is_over(requests: socket.socket) -> bool:
    poller = select.poll()
    poller.register(requests, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poller.poll(0))


def _one_ready(requests: socket.socket) -> None:
    """Fork, and wait until the fork has taken a request or has ended."""
    word_read, word = os.pipe()
    if os.fork() == 0:
        os.close(word_read)
        _serve(requests, word)
    os.close(word)
    os.read(word_read, len(_TAKEN))
    os.close(word_read)


def _serve(requests: socket.socket, word: int) -> NoReturn:
    """Serve one request in the fork: never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # who stands ready goes with the keeper, who has a run does not
        message, descriptors, _, _ = socket.recv_fds(requests, 16, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        prctl(PR_SET_PDEATHSIG, 0)
        os.write(word, _TAKEN)
        os.close(word)
        requests.close()
        if message:
            _oversee(*descriptors)
    finally:
        os._exit(0)


def _oversee(config: int, stdout: int, stderr: int, report: int, control: int, *extras: int) -> None:
    with open(config, "rb") as handle:
        request = marshal.load(handle)  # noqa: S302 - written by our own runner
    named = dict(zip(request["extras"], extras, strict=True))
    oversee(request, stdout=stdout, stderr=stderr, report=report, control=control, extras=named)
