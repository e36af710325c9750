"""Handle the guard's `read_file`: look a file of a work item up by name.

No path is ever resolved: the only names are those of files that calls of this item left, by short or full name, and
under `inputs/` those it was given. Disk, other work and other tenants are out of reach (contract silas 15).
"""

from __future__ import annotations

from typing import Any

from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from apps.work import artifacts, input_artifacts
from apps.work.models import WorkItem
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

MAX_CHARS = 20_000
INPUTS = "inputs/"


def read_file(ctx: CallContext) -> HandlerResult:
    """`args["path"]` → `{"path", "text", "cut"}`; `ctx.context["work_item"]` is the item whose files may be read."""
    path = ctx.args.get("path")
    if not isinstance(path, str):
        raise CallFailed("invalid_arguments", "Name the file to read.", effect_free=True)
    with tenant_scope(ctx.tenant_id):
        content = _content(ctx.context.get("work_item"), path)
    try:
        # A model reads text only; anything else would reach it as noise.
        text = content.decode()
    except UnicodeDecodeError as error:
        raise CallFailed("file_not_text", "This file is no text.", effect_free=True) from error
    return HandlerResult({"path": path, "text": text[:MAX_CHARS], "cut": len(text) > MAX_CHARS})


def readable_names(item: WorkItem) -> list[str]:
    """Return the names that can be read for this item. Inside a scope."""
    left = sorted({file.name for file in artifacts.list_files(item)})
    return [*left, *(f"{INPUTS}{name}" for name in sorted(_inputs(item)))]


def _content(item_id: Any, path: str) -> bytes:
    item = WorkItem.objects.filter(pk=item_id).first()
    content = _named(item, path) if item is not None else None
    if content is None:
        raise CallFailed("file_missing", "This work has no such file.", effect_free=True)
    return content


def _named(item: WorkItem, path: str) -> bytes | None:
    if path.startswith(INPUTS):
        return _inputs(item).get(path.removeprefix(INPUTS))
    fitting = [file for file in artifacts.list_files(item) if path in (file.name, artifacts.full_name(file))]
    return bytes(fitting[-1].content) if fitting else None


def _inputs(item: WorkItem) -> dict[str, bytes]:
    try:
        return input_artifacts.input_files_of(item)
    # A missing input stops the attempt itself with its own reason; a reader only lists what is there.
    except SilasError:
        return {}
