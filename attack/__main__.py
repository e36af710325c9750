"""`python -m attack [--short] [NAME…]`: attack a platform of its own and print what was trusted, acted on or slowed.

Each module here has one function, `run(short) -> list[Figure]`, which may rely on Django, a migrated PostgreSQL and
Redis, and on `SILAS_TEST_SUPERUSER_DSN` for what a superuser of the database would do. Each runs in a process of its
own. Exit code 1: a module broke, or a bound was missed; with `--short`, a bound that no clock decides.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from attack.report import Figure, table

MODULES: tuple[str, ...] = ("floods", "injected", "cards", "wall", "trust", "detect")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODULES))
    parser.add_argument("--short", action="store_true", help="fewer attempts, as in the tests")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.child:
        _run_child(given.names[0], given.short, Path(given.child))
        return 0
    figures: list[Figure] = []
    broken: list[str] = []
    for name in given.names or MODULES:
        print(f"attack {name} …", file=sys.stderr, flush=True)
        found = _run_apart(name, given.short)
        figures += found
        broken += [] if found else [name]
    print(table(figures))
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    judged = [figure for figure in figures if not (given.short and figure.timed)]
    return 1 if broken or not all(figure.holds for figure in judged) else 0


def _run_apart(name: str, short: bool) -> list[Figure]:
    """The figures of one module from a process of its own; none if it broke, which it has reported on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "figures.json"
        options = ["--short"] if short else []
        subprocess.run([sys.executable, "-m", "attack", name, "--child", str(answer), *options], check=False)
        return [Figure(**line) for line in json.loads(answer.read_text())] if answer.exists() else []


def _run_child(name: str, short: bool, answer: Path) -> None:
    from bench.stage import servers
    from tests.prepared import lay

    with servers(lay=lay):
        figures = importlib.import_module(f"attack.{name}").run(short)
    answer.write_text(json.dumps([dataclasses.asdict(figure) for figure in figures]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
