"""Write NOTICE: the packages that an installation is made of, with their versions and licences.

Reads the pinned packages of `requirements/base.txt` and what each says about itself in the environment.
`python tools/make_notice.py` writes the file; `tests/architecture/test_notice.py` fails while it is out of date.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICE = ROOT / "NOTICE"
_PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*?)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
_CLASSIFIER = "License :: OSI Approved :: "
_HEAD = """silas_platform
Copyright 2026 the silas_platform authors

Licensed under the Apache License, Version 2.0 (see LICENSE).

The console's typeface is Inter, under the SIL Open Font License 1.1 (static/console/inter-LICENSE.txt).
An installation is made of the following packages, each under its own licence. Written by tools/make_notice.py.

"""


def pinned() -> list[tuple[str, str]]:
    """(name, version) of every package that `make run` installs, by name."""
    return sorted(
        set(_PINNED.findall((ROOT / "requirements" / "base.txt").read_text())), key=lambda pair: pair[0].lower()
    )


def license_of(name: str) -> str:
    """The licence that the package states: its expression, its classifiers, or the first line of its text."""
    about = metadata(name)
    if expression := about.get("License-Expression"):
        return expression
    classifiers = [line.removeprefix(_CLASSIFIER) for line in about.get_all("Classifier") or () if _CLASSIFIER in line]
    if classifiers:
        return ", ".join(classifiers)
    return (about.get("License") or "not stated").strip().splitlines()[0][:60]


def pinned_here() -> list[tuple[str, str]]:
    """`pinned` without packages for another platform or version of Python."""
    return [(name, version) for name, version in pinned() if _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        metadata(name)
    except PackageNotFoundError:
        return False
    return True


def notice() -> str:
    lines = [f"{name} {version}".ljust(52) + f" {license_of(name)}" for name, version in pinned_here()]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    NOTICE.write_text(notice())
