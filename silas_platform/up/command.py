"""The command line of `up`. `manage.py` calls `main` without loading Django; `management/commands/up.py` lists it."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from silas_platform.up.environment import StartRefused
from silas_platform.up.lines import Screen
from silas_platform.up.run import run

HELP = "Start PostgreSQL and Redis unless addresses are given, migrate, run web, workers and beat until Ctrl-C."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--no-demo", action="store_true", help="leave an empty database empty")
    parser.add_argument("--no-worker", action="store_true", help="web only: no worker, no beat")


def main(arguments: Sequence[str]) -> None:
    """Run the platform until a stop is asked for. Exits with a message when the start is refused."""
    parser = ArgumentParser(prog="manage.py up", description=HELP)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    start(demo=not options.no_demo, work=not options.no_worker)


def start(*, demo: bool, work: bool) -> None:
    """Run until a stop is asked for. `demo` fills an empty database; without `work` only the web process runs."""
    screen = Screen()
    try:
        run(os.environ, demo=demo, work=work, screen=screen)
    except StartRefused as refused:
        sys.exit(f"CommandError: {refused}")
    if screen.closed:
        os._exit(0)  # Python would end by writing to the pipe that nobody reads
