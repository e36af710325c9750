"""Resolve the files of earlier work that an item starts with: exactly the ones it names (spec 5.2.1 step 0.5, 5.2.2).

They come from the finished item that it follows and from the tasks it depends on. A missing or ambiguous name is an
error: guessing could hand over the wrong file. Inside a scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from apps.work import artifacts
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

ALL = "*"
_Files = Mapping[str, bytes]


class LinkageMissing(SilasError):
    """What the item builds on is missing. The message names ids and file names."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.LINKAGE_MISSING, message)


def input_files_of(item: WorkItem) -> dict[str, bytes]:
    """Return the files by the name under which the item's tools find them in `/sandbox/inputs/`. Raises
    `LinkageMissing`."""
    spec = item.spec
    before = [*([spec.follow_up_of] if spec.follow_up_of else []), *spec.depends_on]
    sources = {item_id: _files_of(item_id) for item_id in before}
    files: dict[str, bytes] = {}
    for name in spec.input_artifacts_from:
        chosen = _all_files(sources) if name == ALL else {_plain_name(name, sources): _resolve(name, sources)}
        files |= chosen
    return files


def _files_of(item_id: str) -> _Files:
    # Only of finished work: what a failed attempt left was never verified.
    source: WorkItem | None = WorkItem.objects.filter(pk=UUID(item_id), status=WorkItemStatus.DONE).first()
    if source is None:
        raise LinkageMissing(f"The work {item_id} that this builds on is not done.")
    if source.type == WorkItemType.PROJECT:
        return _all_files({str(task.pk): artifacts.files_of(task) for task in source.children.all()})
    return artifacts.files_of(source)


def _all_files(sources: Mapping[str, _Files]) -> dict[str, bytes]:
    """Return all files of all sources; names that occur twice are prefixed with their source."""
    names = [name for files in sources.values() for name in files]
    return {
        (name if names.count(name) == 1 else f"{source}/{name}"): content
        for source, files in sources.items()
        for name, content in files.items()
    }


def _resolve(name: str, sources: Mapping[str, _Files]) -> bytes:
    source, _, file = name.partition("/")
    if source in sources:
        if file not in sources[source]:
            raise LinkageMissing(f"The work {source} left no file {file}.")
        return sources[source][file]
    left_by = [files for files in sources.values() if name in files]
    if len(left_by) != 1:
        raise LinkageMissing(f"The file {name} {'is not there' if not left_by else 'was left by two of them'}.")
    return left_by[0][name]


def _plain_name(name: str, sources: Mapping[str, _Files]) -> str:
    source, _, file = name.partition("/")
    return file if source in sources else name
