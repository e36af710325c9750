"""Where does a test's PostgreSQL come from? From a cluster that was made and migrated once, by our own start-up code,
and is copied from then on: initdb and all migrations take ten times as long as the copy.

It is kept beside other temporary files under a name that says what it was made of: another byte of a migration, of what
migrations import, of what ships, of the rights of workers, of settings or requirements, and another one is
made. Starting from nothing is tested by tests/platform/test_up.py.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.leftovers import sweep

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "silas-prepared-"
UNUSED_SECONDS = 86_400.0
_MADE_BY = (
    "apps/**/migrations/*.py",
    "kernel/**/migrations/*.py",
    "silas_platform/migrations/*.py",
    "silas_platform/telemetry/metrics_sql.py",
    "silas_platform/apps.py",
    "silas_platform/settings/test.py",
    "silas_platform/up/embedded.py",
    "tests/prepared.py",
)
_OURS = ("apps", "kernel", "llm", "sandbox", "silas_platform")


def lay(var: Path) -> None:
    """Put a migrated cluster where `start_postgres(var)` looks for one."""
    with _locked(_place()) as place:
        if not (place / "data").exists():
            sweep(place.parent, prefixes=[PREFIX], older_than=UNUSED_SECONDS)
            _make(place)
        home = var / "postgres"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", place / "data", home / "data"], check=True)


def _place() -> Path:
    return place_of(name_of_code())


def place_of(name: str) -> Path:
    """A folder of ours alone beside other temporary files, for what is made once a machine; swept away a day after it
    was used last."""
    place = Path(tempfile.gettempdir()) / f"{PREFIX}{os.getuid()}-{name}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != os.getuid():
        raise RuntimeError(f"{place} belongs to somebody else")
    os.utime(place)
    return place


@contextmanager
def _locked(place: Path) -> Iterator[Path]:
    """One process at a time makes or copies; the lock ends with whoever holds it."""
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def name_of_code() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in (ROOT / "requirements/base.txt", ROOT / "apps/skills/bundled.json", *sorted(_made_of())):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _made_of() -> set[Path]:
    """Everything that makes a schema and all that it imports, but no models: a migration holds what they were."""
    found: set[Path] = set()
    ahead = [path for pattern in _MADE_BY for path in ROOT.glob(pattern)]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += [file for name in _imported(path) for file in _files(name)]
    return found


def _imported(path: Path) -> Iterator[str]:
    package = path.relative_to(ROOT).parts
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: -node.level] if node.level else ()
            whole = ".".join([*above, *filter(None, [node.module])])
            yield from (whole, *(f"{whole}.{alias.name}" for alias in node.names))


def _files(module: str) -> Iterator[Path]:
    if module.split(".")[0] in _OURS and "models" not in module:
        place = ROOT.joinpath(*module.split("."))
        yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def _make(place: Path) -> None:
    draft = place / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    subprocess.run([sys.executable, "-m", "tests.prepared", str(draft)], cwd=ROOT, check=True)
    (draft / "postgres" / "data").rename(place / "data")
    shutil.rmtree(draft, ignore_errors=True)


def main(draft: Path) -> None:
    """In a process of its own, because Django's settings are those of this one server."""
    import django
    from django.core.management import call_command

    from silas_platform.up.embedded import start_postgres

    postgres = start_postgres(draft)
    try:
        os.environ.update(
            SILAS_VAR=str(draft),
            DATABASE_URL=postgres.dsn_app,
            DATABASE_OWNER_URL=postgres.dsn_owner,
            DATABASE_WORK_URL=postgres.dsn_work,
            DJANGO_SETTINGS_MODULE="silas_platform.settings.test",
        )
        django.setup()
        call_command("migrate", database="owner", verbosity=0)
    finally:
        postgres.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
