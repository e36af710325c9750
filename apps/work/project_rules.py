"""Rules of projects: which tasks a project covers, and which may run next. Pure (spec 5.2.2).

A project's body ends with a `tasks` block that the harness wrote: the id and the plan hash of every task. So the hash
of the project, which the approval binds, covers each task down to its last argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from apps.work.enums import WorkItemStatus as Status
from apps.work.schemas import WorkItemSpec
from kernel.canonical import canonical_json
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from llm.fences import top_fences

TASKS_BLOCK = "tasks"


def with_task_hashes(body: str, tasks: Iterable[WorkItemSpec]) -> str:
    """Return the body with the block that binds its tasks. Raises `SilasError` as `require_no_tasks_block` does."""
    require_no_tasks_block(body)
    return _with_block(body, canonical_json([{"id": task.id, "plan_hash": task.plan_hash} for task in tasks]))


def require_no_tasks_block(body: str) -> None:
    """Raise `SilasError("plan_tasks_block")` if the plan has a block of its own, or an open fence that would swallow
    the harness's."""
    if _blocks(body) or len(_blocks(_with_block(body, "[]"))) != 1:
        raise SilasError(ErrorCode.PLAN_TASKS_BLOCK)


def _with_block(body: str, lines: str) -> str:
    return f"{body}\n\n```{TASKS_BLOCK}\n{lines}\n```\n"


def covered_tasks(spec: WorkItemSpec) -> Mapping[str, str]:
    """Return the plan hash of every task that the project's approval covers, by id; empty unless there is exactly one
    block."""
    blocks = _blocks(spec.body)
    if len(blocks) != 1:
        return {}
    hashes = {task["id"]: task["plan_hash"] for task in json.loads(blocks[0])}
    # A block that disagrees with the list covers no task (fail closed).
    return hashes if list(hashes) == list(spec.tasks) else {}


def _blocks(body: str) -> list[str]:
    return [token.content for token in top_fences(body) if token.info.strip() == TASKS_BLOCK]


def ready_tasks(depends_on: Mapping[str, Sequence[str]], statuses: Mapping[str, str]) -> list[str]:
    """Return the pending tasks whose dependencies are all done, in order."""
    waiting = [name for name in depends_on if statuses[name] == Status.PENDING]
    return [name for name in waiting if all(statuses[before] == Status.DONE for before in depends_on[name])]


def all_done(statuses: Mapping[str, str]) -> bool:
    return all(status == Status.DONE for status in statuses.values())
