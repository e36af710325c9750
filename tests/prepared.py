"""Where does a test's PostgreSQL come from? From a cluster that was made and migrated once, by our own start-up code,
and is copied from then on: initdb and all migrations take ten times as long as the copy.

It is kept beside other temporary files under a name that says what it was made of: another byte of the application or
of its requirements, and another one is made. Starting from nothing is tested by tests/platform/test_up.py.
"""

from __future__ import annotations

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
_MADE_OF = ("apps", "kernel", "silas_platform", "requirements/base.txt", "tests/prepared.py")


def lay(var: Path) -> None:
    """Put a migrated cluster where `start_postgres(var)` looks for one."""
    with _locked(_place()) as place:
        os.utime(place)  # what is used is not swept away
        if not (place / "data").exists():
            sweep(place.parent, prefixes=[PREFIX], older_than=UNUSED_SECONDS)
            _make(place)
        home = var / "postgres"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", place / "data", home / "data"], check=True)


def _place() -> Path:
    place = Path(tempfile.gettempdir()) / f"{PREFIX}{os.getuid()}-{name_of_code()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != os.getuid():
        raise RuntimeError(f"{place} belongs to somebody else")
    return place


@contextmanager
def _locked(place: Path) -> Iterator[Path]:
    """One process at a time makes or copies; the lock ends with whoever holds it."""
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def name_of_code() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(path for part in _MADE_OF for path in _files(ROOT / part)):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _files(part: Path) -> Iterator[Path]:
    """What can change a schema: no pages, scripts or pictures."""
    if part.is_file():
        yield part
    for suffix in ("py", "sql"):
        yield from part.rglob(f"*.{suffix}")


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
