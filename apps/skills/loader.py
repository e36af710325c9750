"""Read and validate a skill's folder, whole and without following links. Pure reading: no database, nothing is executed
(spec 10.4)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from frontmatter.default_handlers import YAMLHandler
from pydantic import ValidationError

from apps.skills import inspection, rules
from apps.skills.schemas import SkillManifest
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from sandbox.spec import is_safe_relative

MAX_FILES, MAX_FILE_BYTES, MAX_TOTAL_BYTES, MAX_PATH_CHARS = 200, 1_000_000, 5_000_000, 200
MAX_FRONT_CHARS, MAX_FRONT_DEPTH = 100_000, 20
MANIFEST = "SKILL.md"
_FRONT = YAMLHandler()


@dataclass(frozen=True)
class Folder:
    """A validated folder. `body` are the instructions below the front matter, `notes` what the person who decides
    should know."""

    manifest: SkillManifest
    body: str
    files: dict[str, bytes]
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return rules.content_digest(self.files)


def load_folder(path: Path) -> Folder:
    """Raises `SilasError("skill_invalid")` with every problem in `extra`."""
    return load_files(read_folder(path), called=path.name)


def load_files(files: Mapping[str, bytes], *, called: str = "") -> Folder:
    """Validate contents that are in memory. `called`: the folder's name, if any.

    Raises `SilasError("skill_invalid")` with every problem in `extra`.
    """
    problems = _limit_problems(files)
    if problems:
        raise skill_invalid(problems)
    manifest, body = _parse(files.get(MANIFEST))
    problems = inspection.problems(manifest, files)
    if called and manifest.name != called:
        problems.append(f"the folder is called {called}, the skill {manifest.name}")
    if problems:
        raise skill_invalid(problems)
    return Folder(manifest, body, dict(files), tuple(inspection.notes(manifest, files)))


def read_folder(path: Path) -> dict[str, bytes]:
    """Return every file of the folder by its path in it; nothing is validated yet. Raises
    `SilasError("skill_invalid")`."""
    files: dict[str, bytes] = {}
    for root, directories, names in os.walk(path):
        directories[:] = sorted(name for name in directories if name != "__pycache__")
        for name in sorted(names):
            file = Path(root) / name
            if file.is_symlink() or not file.is_file():
                raise skill_invalid([f"{name} is not a plain file"])
            if file.stat().st_size > MAX_FILE_BYTES:
                raise skill_invalid([f"{name} is too large"])
            files[file.relative_to(path).as_posix()] = file.read_bytes()
            if len(files) > MAX_FILES:
                raise skill_invalid(["the folder is too large"])
        if any((Path(root) / name).is_symlink() for name in directories):
            raise skill_invalid(["a directory is a link"])
    return files


def _limit_problems(files: Mapping[str, bytes]) -> list[str]:
    if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_TOTAL_BYTES:
        return ["the folder is too large"]
    large = [f"{name} is too large" for name, content in files.items() if len(content) > MAX_FILE_BYTES]
    return large + [f"{name!r} is no path in the folder" for name in files if not _is_inside(name)]


def _is_inside(name: str) -> bool:
    return is_safe_relative(name) and len(name) <= MAX_PATH_CHARS and name.isprintable() and "\\" not in name


def _parse(raw: bytes | None) -> tuple[SkillManifest, str]:
    if raw is None:
        raise skill_invalid(["there is no SKILL.md"])
    front, body = read_front_matter(raw)
    try:
        return manifest_of(front), body
    except (ValidationError, TypeError, ValueError) as error:
        problems = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        raise skill_invalid([f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in problems]) from error


def read_front_matter(raw: bytes) -> tuple[dict[str, object], str]:
    """Return the front matter of a SKILL.md, and the text below it. Raises `SilasError("skill_invalid")`."""
    try:
        text = raw.decode("utf-8").replace("\r\n", "\n").strip()
        if not _FRONT.detect(text):
            return {}, text
        front, body = _FRONT.split(text)
        _require_plain(front)
        values = _FRONT.load(front)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, OverflowError, RecursionError) as error:
        raise skill_invalid([f"SKILL.md cannot be read: {' '.join(str(error).split())[:300]}"]) from error
    return (values if isinstance(values, dict) else {}), body.strip()


def _require_plain(front: str) -> None:
    """Check front matter by its parser events, before it is loaded: the parser's own recursion ends the process on
    deeply nested values, its time grows with the square of the depth, and a few aliases of aliases expand to a
    gigabyte."""
    if len(front) > MAX_FRONT_CHARS:
        raise ValueError("the front matter is too long")
    depth = 0
    for event in yaml.parse(front, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not read")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_FRONT_DEPTH:
            raise ValueError("its values are nested too deeply")


def manifest_of(front: Mapping[str, object]) -> SkillManifest:
    """Return the declared manifest; an unknown key is refused. Raises ValueError, pydantic's included."""
    metadata = front.get("metadata")
    if "tools" in front:
        raise ValueError("tools stand under metadata")
    if not isinstance(metadata, dict) or "tools" not in metadata:
        return SkillManifest(**front)
    rest = {name: value for name, value in metadata.items() if name != "tools"}
    return SkillManifest(**{**front, "metadata": rest, "tools": metadata["tools"] or []})


def skill_invalid(problems: list[str]) -> SilasError:
    return SilasError(
        ErrorCode.SKILL_INVALID,
        gettext("The skill cannot be installed: {problems}").format(problems=problems[0]),
        extra={"problems": problems},
    )
