"""The nursery imports libraries and forks itself at each request on its socket: `python -m tests.nursery DESCRIPTOR`.

A child returns out of `serve` and is, from there on, the program that was asked for: it ends as any program does.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import re
import runpy
import signal
import socket
import sys
import time
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.nursery import MESSAGE_BYTES

# What the platform comes to import and no setting changes. Not Daphne: its event loop must be made after the fork.
LIBRARIES = (
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "channels.layers",
    "cryptography.x509",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "httpx",
    "jsonschema",
    "markdown_it",
    "mcp",
    "numpy",
    "opentelemetry.sdk.trace",
    "phonenumbers",
    "psutil",
    "psycopg_pool",
    "pydantic_ai",
    "redis.asyncio",
    "requests",
    "yaml",
)
# What web, worker and beat come to import anyway, for a nursery that is asked a second time.
PLATFORM = (
    "silas_platform.urls",
    "silas_platform.background",
    "silas_platform.worker_watchdog",
    "apps.console.routing",
    "apps.safety.mcp_server",
    "apps.sessions.routing",
    "celery.apps.beat",
)
_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def serve(line: socket.socket) -> Sequence[str]:
    """Return in a child only, with the program that it is to be."""
    forked, has_settings = 0, False
    while True:
        gc.freeze()  # a collection in a child would copy the pages that it shares with the nursery
        packet, files, _, _ = socket.recv_fds(line, MESSAGE_BYTES, 3)
        if not packet:
            os._exit(0)
        told = json.loads(packet)
        if "argv" in told:
            if has_settings and forked == 1:
                _import(PLATFORM)
                gc.freeze()
            forked += 1
            if _fork_for_parent(line, leads=told["leads"]):
                _move_in(told, files)
                return list(told["argv"])
        elif os.fork():
            line.send(b"0")
        else:
            line.close()
            line = socket.socket(fileno=files.pop())
            _set_up(told["env"])
            forked, has_settings = 0, True
        for file in files:
            os.close(file)


def _fork_for_parent(line: socket.socket, *, leads: bool) -> bool:
    """Fork twice, so that the child is nobody's here. Return whether this is the child."""
    begun, end = os.pipe()
    middle = os.fork()
    if not middle:
        if os.fork():
            os._exit(0)
        if leads:
            os.setsid()
        os.write(end, str(os.getpid()).encode())
        return True
    os.close(end)
    os.waitpid(middle, 0)
    line.send(os.read(begun, 20))
    os.close(begun)
    return False


def _set_up(env: Mapping[str, str]) -> None:
    import django

    _replace_environment(env)
    django.setup()


def _import(modules: Sequence[str]) -> None:
    for name in modules:
        importlib.import_module(name)


def _replace_environment(env: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)


def _move_in(told: Mapping[str, Any], files: Sequence[int]) -> None:
    """Leave everything behind that was the nursery's."""
    for own, file in enumerate(files):
        os.dup2(file, own)
    os.closerange(3, 1024)
    os.chdir(told["cwd"])
    _replace_environment(told["env"])
    if not told["network"]:
        _leave_network()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=bool(told["env"].get("PYTHONUNBUFFERED")))
    for words in filter(None, told["env"].get("PYTHONWARNINGS", "").split(",")):
        _filter_warnings(words)
    while os.getppid() != told["parent"]:
        time.sleep(0.001)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _leave_network() -> None:
    """As `unshare --net`, and without root `unshare --user --map-root-user` first."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWNET | (_CLONE_NEWUSER if user else 0)):
        raise OSError(ctypes.get_errno(), "cannot leave the network")
    if user:
        for name, words in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", name).write_text(words)


def _filter_warnings(words: str) -> None:
    action, _, message = words.partition(":")
    warnings.filterwarnings(action, re.escape(message))


def become(argv: Sequence[str]) -> None:
    """As the interpreter does with these arguments."""
    words = list(argv)
    while words[0] in ("-u", "-W"):
        if words.pop(0) == "-W":
            _filter_warnings(words.pop(0))
    what = words[0]
    if what == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif what == "-c":
        sys.argv = ["-c", *words[2:]]
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), module.__dict__)
    elif what.startswith("-"):
        raise ValueError(f"a nursery does not know the switch {what}")
    else:
        sys.argv = words
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    _import(LIBRARIES)
    become(serve(socket.socket(fileno=int(sys.argv[1]))))
