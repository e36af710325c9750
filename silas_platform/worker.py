"""Start a Celery worker of `make run`: `python -m silas_platform.worker NAME --processes 2`.

As `celery worker` does, which also loads Celery's other commands and the shell that they bring: 8 MB.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading

from silas_platform.celery import app


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--queues", help="names, separated by commas; all without it")
    parser.add_argument("--beat", action="store_true", help="also do what beat does; only with --threads")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--threads", type=int)
    size.add_argument("--processes", type=int)
    told = parser.parse_args(arguments)
    if told.beat and not told.threads:
        parser.error("--beat needs --threads: a process with a thread must not fork")
    # On one machine there is nothing to gossip with, each handshake delays the start by a second, and no program
    # listens to heartbeats.
    worker = app.Worker(
        hostname=f"{told.name}@{socket.gethostname()}",
        queues=told.queues,
        pool_cls="threads" if told.threads else "prefork",
        concurrency=told.threads or told.processes,
        loglevel="INFO",
        without_gossip=True,
        without_heartbeat=True,
        without_mingle=True,
        quiet=True,
    )
    # Messages arrive at once; without one, ask Redis again after two seconds, not after one.
    app.conf.broker_transport_options["polling_interval"] = 2
    if told.beat:
        threading.Thread(target=_wake_workers, name="beat", daemon=True).start()
    worker.start()
    return int(worker.exitcode or 0)


def _wake_workers() -> None:
    """Do what beat does (`silas_platform.beat`) until this process ends, and end it when that fails: its supervisor
    starts another. The schedule is kept in memory, because every entry is due within seconds."""
    from celery.beat import Service  # needed by one worker of the run alone

    from silas_platform import beat

    try:
        Service(beat.app, scheduler_cls="celery.beat:Scheduler").start()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
