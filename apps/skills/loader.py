"""What stands in a skill's folder? Reads it whole, without following links, and says why it cannot be installed.

Pure reading: no database, nothing is executed (spec 10.4). `services.install_version` calls it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontmatter
import yaml
from pydantic import ValidationError

from apps.skills import rules
from apps.skills.schemas import SkillManifest
from kernel.errors import SilasError

MAX_FILES, MAX_FILE_BYTES, MAX_TOTAL_BYTES = 200, 1_000_000, 5_000_000
_KNOWN = ("name", "description", "license", "activation")


@dataclass(frozen=True)
class Folder:
    """A validated folder. `body` are the instructions below the front matter."""

    manifest: SkillManifest
    body: str
    files: dict[str, bytes]

    @property
    def digest(self) -> str:
        return rules.content_digest(self.files)


def load_folder(path: Path) -> Folder:
    """Raises `SilasError("skill_invalid")` with every problem in `extra`."""
    files = _read(path)
    manifest, body = _parse(files.get("SKILL.md"))
    found = rules.problems(manifest, files)
    if manifest.name != path.name:
        found.append(f"the folder is called {path.name}, the skill {manifest.name}")
    if found:
        raise _invalid(found)
    return Folder(manifest, body, files)


def _read(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for root, directories, names in os.walk(path):
        directories[:] = sorted(name for name in directories if name != "__pycache__")
        for name in sorted(names):
            file = Path(root) / name
            if file.is_symlink() or not file.is_file():
                raise _invalid([f"{name} is not a plain file"])
            if file.stat().st_size > MAX_FILE_BYTES:
                raise _invalid([f"{name} is too large"])
            files[file.relative_to(path).as_posix()] = file.read_bytes()
        if any((Path(root) / name).is_symlink() for name in directories):
            raise _invalid(["a directory is a link"])
    if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_TOTAL_BYTES:
        raise _invalid(["the folder is too large"])
    return files


def _parse(raw: bytes | None) -> tuple[SkillManifest, str]:
    if raw is None:
        raise _invalid(["there is no SKILL.md"])
    try:
        post = frontmatter.loads(raw.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise _invalid([f"SKILL.md cannot be read: {error}"]) from error
    known: dict[str, Any] = {name: post.metadata[name] for name in _KNOWN if name in post.metadata}
    extra = post.metadata.get("metadata")
    tools = extra.get("tools") if isinstance(extra, dict) else None
    try:
        return SkillManifest(**known, tools=tools or []), post.content
    except (ValidationError, TypeError) as error:
        problems = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        raise _invalid([f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in problems]) from error


def _invalid(found: list[str]) -> SilasError:
    return SilasError("skill_invalid", f"The skill cannot be installed: {found[0]}", extra={"problems": found})
