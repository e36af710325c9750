"""Command lines and tools of scripts in the plain Agent Skills form. Pure.

Such a skill declares `script_args` and no `metadata.tools`. Each declared script is a tool that reads: its arguments
are validated before the sandbox starts (undeclared ones refused, defaults applied), and are passed on the command line,
as the script's author expects, and in `call.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from apps.skills.schemas import ArgSpec, SkillManifest, ToolDeclaration

_INTERPRETER = ("python3", "-I", "-S")


def command_line(script: str, args: Mapping[str, object], spec: Mapping[str, ArgSpec] | None) -> list[str]:
    """Return the command line. Without a `spec` the script reads `call.json`."""
    base = [*_INTERPRETER, f"/sandbox/skill/{script}"]
    if spec is None:
        return base
    positional = [str(args[name]) for name, arg in spec.items() if arg.passed == "position" and name in args]
    options = [word for name, arg in spec.items() if arg.passed == "option" for word in _option(name, args.get(name))]
    return [*base, *options, *(["--", *positional] if positional and _looks_like_option(positional) else positional)]


def with_defaults(args: Mapping[str, object], spec: Mapping[str, ArgSpec] | None) -> dict[str, object]:
    """Return the arguments with the declared defaults for those that were left out."""
    defaults = {name: arg.default for name, arg in (spec or {}).items() if arg.default is not None}
    return {**defaults, **args}


def schema_of(spec: Mapping[str, ArgSpec]) -> dict[str, object]:
    """Return the arguments as a closed JSON schema."""
    return {
        "type": "object",
        "properties": {name: arg.as_schema for name, arg in spec.items()},
        "required": [name for name, arg in spec.items() if arg.default is None and not arg.optional],
        "additionalProperties": False,
    }


def argument_problem(args: Mapping[str, object], spec: Mapping[str, ArgSpec] | None) -> str:
    """Return what is wrong with the arguments, undeclared ones included; "" when they fit."""
    if spec is None:
        return ""
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(schema_of(spec)).iter_errors(dict(args))
    first = next(iter(sorted(errors, key=lambda error: list(error.absolute_path))), None)
    return str(first.message)[:200] if first else ""


def derived_tools(manifest: SkillManifest) -> list[ToolDeclaration]:
    """Return the tools of a skill without `metadata.tools`: its declared scripts, none of which acts."""
    if manifest.tools or manifest.type == "connection":
        return []
    return [_derived(manifest, script, spec) for script, spec in manifest.script_args.items()]


def _derived(manifest: SkillManifest, script: str, spec: Mapping[str, ArgSpec]) -> ToolDeclaration:
    stem = PurePosixPath(script).stem.replace("-", "_").lower()
    name = "".join(char for char in f"{manifest.name.replace('-', '_')}_{stem}" if char.isalnum() or char == "_")
    return ToolDeclaration(
        name=name[:60] if name[0].isalpha() else f"t_{name}"[:60],
        script=script,
        description=f"{stem.replace('_', ' ').capitalize()}: {manifest.description}"[:300],
        args=schema_of(spec),
        timeout=60,
    )


def _option(name: str, value: object) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is None or value is False:
        return []
    return [flag] if value is True else [f"{flag}={value}"]


def _looks_like_option(placed: list[str]) -> bool:
    return any(value.startswith("-") for value in placed)
