"""The `silas_skill` package that scripts of skills import, mounted at `/sandbox/lib` beside the skill's folder.

It is the platform's code, as Python's standard library is: no skill's content hash covers it, and no skill can change
it.
"""

from __future__ import annotations

import functools
from pathlib import Path

from django.conf import settings

from sandbox.spec import Mount

NAME = "silas_skill"


def mounts(folder: Mount) -> dict[str, Mount]:
    """What a script's run sees of its skill, and the library."""
    return {"skill": folder, "lib": _files()}


@functools.cache
def _files() -> dict[str, bytes]:
    return {f"{NAME}/{path.name}": path.read_bytes() for path in (Path(settings.BASE_DIR) / NAME).glob("*.py")}
