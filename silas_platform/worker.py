"""Start a Celery worker of `make run`: `python -m silas_platform.worker NAME --processes 2`.

As `celery worker` does, which also loads Celery's other commands and the shell that they bring: 8 MB.
"""

from __future__ import annotations

import argparse
import socket
import sys

from silas_platform.celery import app


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="worker", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--queues", help="names, separated by commas; all without it")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--threads", type=int)
    size.add_argument("--processes", type=int)
    told = parser.parse_args(arguments)
    # On one machine there is nothing to gossip with, and each handshake delays the start by a second.
    worker = app.Worker(
        hostname=f"{told.name}@{socket.gethostname()}",
        queues=told.queues,
        pool_cls="threads" if told.threads else "prefork",
        concurrency=told.threads or told.processes,
        loglevel="INFO",
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
