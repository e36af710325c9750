"""Store and list the files that an item's calls left.

Files are stored in the transaction that settles the call, never on an agent's word (spec 5.2.1 c3). Other work gets
them only by naming them (`input_artifacts_from`). Called inside scopes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from uuid import UUID

from django.db.models import Sum

from apps.work.models import Artifact, WorkItem
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

MAX_BYTES_AN_ATTEMPT = 16 << 20


def store(attempt_id: UUID, files: Mapping[str, bytes]) -> None:
    """Store what a call left. Raises `SilasError("artifacts_too_large")`, which rolls the call back."""
    for name, content in files.items():
        fields = {"content": content, "size": len(content), "digest": hashlib.sha256(content).hexdigest()}
        Artifact.objects.update_or_create(attempt_id=attempt_id, name=name[:200], defaults=fields)
    total_bytes = Artifact.objects.filter(attempt_id=attempt_id).aggregate(Sum("size"))["size__sum"] if files else 0
    if total_bytes > MAX_BYTES_AN_ATTEMPT:
        raise SilasError(ErrorCode.ARTIFACTS_TOO_LARGE)


def files_of(item: WorkItem) -> dict[str, bytes]:
    """Return every file that the item's calls have left; the latest of each name."""
    rows = Artifact.objects.filter(attempt__work_item=item).order_by("attempt__number")
    return {row.name: bytes(row.content) for row in rows}


def list_files(item: WorkItem) -> list[Artifact]:
    """List the item's files, those of the latest attempt last; contents are loaded on access."""
    rows = Artifact.objects.filter(attempt__work_item=item).select_related("attempt__work_item").defer("content")
    return list(rows.order_by("attempt__number"))


def full_name(artifact: Artifact) -> str:
    """Return `{plan}/{task}/{attempt}/{name}` (contract silas 15); a task without a parent is its own plan."""
    item = artifact.attempt.work_item
    return f"{item.parent_id or item.pk}/{item.pk}/{artifact.attempt.number}/{artifact.name}"
