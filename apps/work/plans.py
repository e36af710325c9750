"""What does a plan written by a model say? Markdown with front matter in, a work item or a refusal out (spec 7.2).

Pure. Nothing a plan claims about approval is read; the front matter is YAML without its traps (no aliases, no repeated
keys, `on` and `yes` are words). Every refusal is a `SilasError` whose message says what to change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from apps.work.schemas import WorkItemSpec
from kernel.canonical import canonical_json
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall, calls_in

__all__ = ["PlannedCall", "calls_in", "fill", "parse", "template_call"]

MAX_PLAN_CHARS = 50_000
_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*)\n```\s*\Z", re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)(?:^|\n)---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_REQUIRED = ("id", "type", "title")


def parse(markdown: str) -> WorkItemSpec:
    """The work item that a plan describes. Unknown keys and `needs_approval` are ignored.

    Raises `SilasError`: plan_too_long, plan_front_matter_missing, plan_front_matter_unclosed,
    plan_front_matter_invalid, plan_field_missing, plan_field_invalid, bad_call_block.
    """
    if len(markdown) > MAX_PLAN_CHARS:
        raise SilasError("plan_too_long", f"A plan has at most {MAX_PLAN_CHARS} characters.")
    front, body = _split(_unfenced(markdown.replace("\r\n", "\n")))
    spec = _validated(_loaded(front), body)
    calls_in(spec.body)
    return spec


def _unfenced(text: str) -> str:
    """Models like to wrap a whole plan in one code fence; a fence inside the plan stays."""
    wrapped = _FENCE.match(text)
    return (wrapped[1] if wrapped and wrapped[1].lstrip().startswith("---") else text).lstrip("\ufeff \t\n")


def _split(text: str) -> tuple[str, str]:
    if not text.startswith("---"):
        raise SilasError("plan_front_matter_missing", "A plan begins with front matter between two lines of ---.")
    found = _FRONT.match(text)
    if found is None:
        raise SilasError("plan_front_matter_unclosed", "The plan's front matter has no closing line of ---.")
    return found[1], text[found.end() :].strip("\n")


def _loaded(front: str) -> Mapping[str, Any]:
    try:
        fields = yaml.load(front, Loader=_PlainLoader)  # noqa: S506 (a SafeLoader with fewer features)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 2}" if place else ""
        raise SilasError("plan_front_matter_invalid", f"The plan's front matter cannot be read{where}.") from None
    if not isinstance(fields, dict):
        raise SilasError("plan_front_matter_invalid", "The plan's front matter must be a list of fields.")
    return fields


def _validated(fields: Mapping[str, Any], body: str) -> WorkItemSpec:
    missing = [name for name in _REQUIRED if fields.get(name) in (None, "")]
    if missing:
        raise SilasError("plan_field_missing", f"The plan lacks {', '.join(missing)}.", extra={"fields": missing})
    known = {name: value for name, value in fields.items() if name in WorkItemSpec.model_fields and name != "body"}
    try:
        return WorkItemSpec.model_validate({**known, "body": body})
    except ValidationError as error:
        raise _refusal(error) from None


def _refusal(error: ValidationError) -> SilasError:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "plan"
    return SilasError("plan_field_invalid", f"In the plan, {place}: {first['msg']}.", extra={"field": place})


class _PlainLoader(yaml.SafeLoader):
    """YAML 1.2's plain scalars: null, true and false, decimal numbers; everything else is text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (yaml's own contract)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if any(not isinstance(key, str) for key in keys) or len(set(keys)) != len(keys):
            raise yaml.YAMLError("keys are words and stand once")
        return super().construct_mapping(node, deep=deep)


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


# --- a goal's template: what it may start by itself (spec 5.2.3)

_HOLE = re.compile(r'"\$([a-z_]+)"')


def template_call(template: str) -> PlannedCall:
    """The one call of a goal's template; each argument is a constant or the placeholder "$name" alone.

    Raises `SilasError("bad_template")`: an author's mistake, found when the goal is adopted and never at run time.
    """
    calls = calls_in(template)
    if len(calls) != 1:
        raise SilasError("bad_template", "A goal's template holds exactly one call.")
    for name, value in calls[0].args.items():
        if "$" in str(value) and value != f"${name}":
            raise SilasError("bad_template", f"In the template, {name} must be a constant or ${name}.")
    return calls[0]


def fill(template: str, call: PlannedCall) -> str | None:
    """The template with the call's arguments filled in; None when the call does not fit it exactly."""
    expected = template_call(template)
    if expected.tool != call.tool or set(expected.args) != set(call.args):
        return None
    holes = {name for name, value in expected.args.items() if value == f"${name}"}
    if any(call.args[name] != value for name, value in expected.args.items() if name not in holes):
        return None
    filled = _HOLE.sub(lambda hole: canonical_json(call.args[hole[1]]) if hole[1] in holes else hole[0], template)
    return filled if calls_in(filled) == (call,) else None
