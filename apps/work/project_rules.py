"""Which tasks does a project cover, which of them may run now, and what does it come to? Pure (spec 5.2.2).

A project's body ends with a `tasks` block that the harness wrote: the id and the plan hash of every task. So the hash
of the project, which is what a person's yes binds, covers each task down to its last argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from markdown_it import MarkdownIt

from apps.work.enums import WorkItemStatus as Status
from apps.work.schemas import WorkItemSpec
from kernel.canonical import canonical_json
from kernel.errors import SilasError

TASKS_BLOCK = "tasks"


def with_task_hashes(body: str, tasks: Iterable[WorkItemSpec]) -> str:
    """The body with the block that binds its tasks. Raises `SilasError` as `require_place` does."""
    require_no_tasks_block(body)
    return _with_block(body, canonical_json([{"id": task.id, "plan_hash": task.plan_hash} for task in tasks]))


def require_no_tasks_block(body: str) -> None:
    """Raises `SilasError("plan_tasks_block")` where somebody wrote a block of their own, or left a fence open that
    would swallow the house's."""
    if _blocks(body) or len(_blocks(_with_block(body, "[]"))) != 1:
        raise SilasError("plan_tasks_block", "A plan does not write its own block of tasks, and closes its fences.")


def _with_block(body: str, lines: str) -> str:
    return f"{body}\n\n```{TASKS_BLOCK}\n{lines}\n```\n"


def covered_tasks(spec: WorkItemSpec) -> Mapping[str, str]:
    """The plan hash of every task that the project's yes covers, by id; nothing where the block is not exactly one."""
    blocks = _blocks(spec.body)
    if len(blocks) != 1:
        return {}
    found = {task["id"]: task["plan_hash"] for task in json.loads(blocks[0])}
    return found if list(found) == list(spec.tasks) else {}


def _blocks(body: str) -> list[str]:
    fences = (token for token in MarkdownIt("commonmark").parse(body) if token.type == "fence" and not token.level)
    return [token.content for token in fences if token.info.strip() == TASKS_BLOCK]


def ready_tasks(depends_on: Mapping[str, Sequence[str]], statuses: Mapping[str, str]) -> list[str]:
    """The tasks that wait and whose dependencies are all done, in order."""
    waiting = [name for name in depends_on if statuses[name] == Status.PENDING]
    return [name for name in waiting if all(statuses[before] == Status.DONE for before in depends_on[name])]


def all_done(statuses: Mapping[str, str]) -> bool:
    return all(status == Status.DONE for status in statuses.values())
