"""Parse plans written by a model: Markdown with front matter in, a work item or an error out (spec 7.2).

Pure. Nothing that a plan claims about approval is read; the front matter is a safe subset of YAML (no aliases, anchors,
tags or repeated keys; `on` and `yes` are strings). Every error is a `SilasError` that says what to change and where. A
project holds the plans of its tasks, each in a fenced `task` block of its body (`read_project`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import yaml
from pydantic import ValidationError

from apps.work import rules
from apps.work.enums import WorkItemType
from apps.work.schemas import WorkItemSpec
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from llm.calls import PlannedCall, parse_calls
from llm.fences import top_fences

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = [
    "ParsedPlan",
    "PlannedCall",
    "ProjectPlan",
    "parse",
    "parse_calls",
    "parse_with_lines",
    "raise_plan_error",
    "read_project",
]

MAX_PLAN_CHARS, MAX_FRONT_CHARS = 50_000, 20_000
_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*)\n```\s*\Z", re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)(?:^|\n)---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
# Markdown also breaks lines at a lone carriage return, so normalize: every reader must see the same lines.
_LINE_BREAK = re.compile("\r\n?")
_REQUIRED = ("id", "type", "title")
# Runtime fields of the contract: a plan may contain them, but they are ignored.
_RUNTIME = frozenset(
    ["needs_approval", "approval_token", "status", "attempts", "budget_used", "verification_results", "created_at"]
)


def parse(markdown: str, *, lenient: bool = False) -> WorkItemSpec:
    """Return the work item that a plan describes, ignoring what it says of its own approval or progress. `lenient` also
    ignores unknown keys, for plans whose front matter does not count.

    Raises `SilasError`, with `extra["line"]` where there is one: plan_too_long, plan_front_matter_missing,
    plan_front_matter_unclosed, plan_front_matter_invalid, plan_field_missing, plan_field_unknown, plan_field_invalid,
    bad_call_block.
    """
    return parse_with_lines(markdown, lenient=lenient).spec


@dataclass(frozen=True)
class ParsedPlan:
    """A parsed plan; `line` returns the line of a field, or of the nearest one around it."""

    spec: WorkItemSpec
    line: Callable[[Sequence[object]], int]


def parse_with_lines(markdown: str, *, lenient: bool = False) -> ParsedPlan:
    """Like `parse`, with the lines of the fields for further validation."""
    if len(markdown) > MAX_PLAN_CHARS:
        raise SilasError(
            ErrorCode.PLAN_TOO_LONG,
            gettext("A plan has at most {max_plan_chars} characters.").format(max_plan_chars=MAX_PLAN_CHARS),
        )
    text, body = _split(_unfenced(_LINE_BREAK.sub("\n", markdown)))
    front = _load_front_matter(text)
    spec = _validate(front, body, lenient=lenient)
    parse_calls(spec.body)
    return ParsedPlan(spec, front.line)


def _unfenced(text: str) -> str:
    """Remove a code fence around the whole plan, which models like to add; a fence inside the plan stays."""
    wrapped = _FENCE.match(text)
    return (wrapped[1] if wrapped and wrapped[1].lstrip().startswith("---") else text).lstrip("\ufeff \t\n")


def _split(text: str) -> tuple[str, str]:
    if not text.startswith("---"):
        raise_plan_error(
            ErrorCode.PLAN_FRONT_MATTER_MISSING, "A plan begins with front matter between two lines of ---.", 1
        )
    match = _FRONT.match(text)
    if match is None:
        raise_plan_error(ErrorCode.PLAN_FRONT_MATTER_UNCLOSED, "The plan's front matter has no closing line of ---.", 1)
    if len(match[1]) > MAX_FRONT_CHARS:
        raise_plan_error(ErrorCode.PLAN_TOO_LONG, f"A plan's front matter has at most {MAX_FRONT_CHARS} characters.", 1)
    return match[1], text[match.end() :].strip("\n")


def raise_plan_error(code: ErrorCode, message: str, line: int, **extra: object) -> NoReturn:
    """Raise the error of a plan, with the line that its author has to look at."""
    raise SilasError(
        code,
        gettext("Line {line}: {message}").format(line=line, message=message),
        extra={"line": line, **extra},
        status=400,
    )


@dataclass(frozen=True)
class _Front:
    """Fields of the front matter and their positions."""

    fields: Mapping[str, Any]
    node: yaml.MappingNode

    def line(self, place: Sequence[object] = ()) -> int:
        """Return the line of this field, or of the nearest one around it."""
        node: yaml.Node = self.node
        for part in place:
            child = _child(node, part)
            if child is None:
                break
            node = child
        return _line(node.start_mark)


def _child(node: yaml.Node, part: object) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        found: yaml.Node = node.value[part]
        return found
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None


def _line(mark: yaml.Mark) -> int:
    """Line within the plan, whose first line is the opening ---."""
    return int(mark.line) + 2


def _load_front_matter(front: str) -> _Front:
    loader = None
    try:
        loader = _PlainLoader(front)
        node = loader.get_single_node()
        fields = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise_plan_error(
            ErrorCode.PLAN_FRONT_MATTER_INVALID,
            f"the front matter is not plain YAML: {problem}.",
            _line(mark) if mark else 2,
        )
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(fields, dict) or not isinstance(node, yaml.MappingNode):
        raise_plan_error(ErrorCode.PLAN_FRONT_MATTER_INVALID, "the front matter must be a list of fields.", 2)
    return _Front(fields, node)


def _validate(front: _Front, body: str, *, lenient: bool) -> WorkItemSpec:
    fields = front.fields
    missing = [name for name in _REQUIRED if fields.get(name) in (None, "")]
    if missing:
        raise_plan_error(
            ErrorCode.PLAN_FIELD_MISSING, f"the plan lacks {', '.join(missing)}.", front.line(), fields=missing
        )
    known = {name: value for name, value in fields.items() if name in WorkItemSpec.model_fields and name != "body"}
    strange = [] if lenient else [name for name in fields if name not in known and name not in _RUNTIME]
    if strange:
        raise_plan_error(
            ErrorCode.PLAN_FIELD_UNKNOWN,
            f"a plan has no field {strange[0]}.",
            front.line(strange[:1]),
            field=strange[0],
        )
    try:
        return WorkItemSpec.model_validate({**known, "body": body})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "plan"
        raise_plan_error(
            ErrorCode.PLAN_FIELD_INVALID, f"{place}: {first['msg']}.", front.line(first["loc"]), field=place
        )


class _PlainLoader(yaml.SafeLoader):
    """YAML 1.2's plain scalars: null, true and false, decimal numbers; everything else is text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (yaml's own contract)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # yaml has no types
        # Aliases can unfold a small text into gigabytes.
        if self.check_event(yaml.AliasEvent):
            raise _yaml_error("aliases are not allowed", event)
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise _yaml_error("anchors and tags are not allowed", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[object, object]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for place, (key, (key_node, _)) in enumerate(zip(keys, node.value, strict=True)):
            # Readers disagree about which of two equal keys counts, and a person could approve the other.
            if not isinstance(key, str) or key in keys[:place]:
                raise _yaml_error("keys must be strings and unique", key_node)
        return super().construct_mapping(node, deep=deep)


def _yaml_error(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)


# --- projects: one plan that contains the plans of its tasks (spec 5.2.2)

TASK_BLOCK = "task"


@dataclass(frozen=True)
class ProjectPlan:
    """A project: its own prose without the blocks, and its tasks in an order in which they can run."""

    spec: WorkItemSpec
    tasks: tuple[WorkItemSpec, ...]


def read_project(spec: WorkItemSpec, *, lenient: bool = False) -> ProjectPlan:
    """Return the tasks of a project: `tasks` names them, the body holds a `task` block with the plan of each.

    Raises `SilasError`: plan_tasks_missing, plan_task_not_written, plan_task_unlisted, plan_task_twice,
    plan_task_not_a_task, plan_project_calls, plan_too_many_tasks, plan_dependency_missing, plan_dependency_cycle, and
    those of `parse`.
    """
    blocks = top_fences(spec.body)
    tasks = [_task(token, lenient) for token in blocks if token.info.strip() == TASK_BLOCK]
    _require_listed(spec.tasks, [task.id for task in tasks])
    ordered = rules.dependency_order({task.id: task.depends_on for task in tasks})
    by_id = {task.id: task for task in tasks}
    return ProjectPlan(_own_prose(spec, blocks), tuple(by_id[name] for name in ordered))


def _task(token: Token, lenient: bool) -> WorkItemSpec:
    assert token.map is not None
    first = token.map[0] + 1
    try:
        task = parse(token.content, lenient=lenient)
    except SilasError as refusal:
        line = first + int(refusal.extra.get("line", 1))
        raise SilasError(
            refusal.code,
            gettext("In the task block of line {first}: {message}").format(first=first, message=refusal.message),
            extra={**refusal.extra, "line": line},
        ) from refusal
    if task.type != WorkItemType.TASK or task.tasks:
        raise_plan_error(ErrorCode.PLAN_TASK_NOT_A_TASK, "a project is made of tasks only.", first)
    return task


def _require_listed(listed: Sequence[str], written: Sequence[str]) -> None:
    if not listed:
        raise SilasError(ErrorCode.PLAN_TASKS_MISSING)
    if len(listed) > rules.MAX_TASKS:
        raise SilasError(
            ErrorCode.PLAN_TOO_MANY_TASKS,
            gettext("A project has at most {max_tasks} tasks.").format(max_tasks=rules.MAX_TASKS),
        )
    for name in (*listed, *written):
        if listed.count(name) > 1 or written.count(name) > 1:
            raise SilasError(
                ErrorCode.PLAN_TASK_TWICE,
                gettext("The task {name} is defined twice.").format(name=name),
                extra={"task": name},
            )
        if name not in written:
            raise SilasError(
                ErrorCode.PLAN_TASK_NOT_WRITTEN,
                gettext("The plan of the task {name} is missing.").format(name=name),
                extra={"task": name},
            )
        if name not in listed:
            raise SilasError(
                ErrorCode.PLAN_TASK_UNLISTED,
                gettext("The project doesn't list its task {name}.").format(name=name),
                extra={"task": name},
            )


def _own_prose(spec: WorkItemSpec, blocks: Sequence[Token]) -> WorkItemSpec:
    """Return the project without the plans of its tasks. Removing blocks may join text into a new call block, so the
    remaining prose is parsed again and must call nothing."""
    lines = spec.body.split("\n")
    # From the end, so that the line numbers of the blocks before it stay right.
    for token in reversed([token for token in blocks if token.info.strip() == TASK_BLOCK]):
        assert token.map is not None
        del lines[slice(*token.map)]
    prose = "\n".join(lines).strip("\n")
    if parse_calls(prose):
        raise SilasError(ErrorCode.PLAN_PROJECT_CALLS)
    return spec.model_copy(update={"body": prose})
