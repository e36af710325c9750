"""Map foreign front matter: compatible keys stay, keys with a counterpart are mapped, the rest is removed; each is
written into the report. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apps.skills.imports.adapter import Report

_KEPT = ("name", "description", "license", "requirements", "metadata")
_OURS = (
    "ui",
    "activation",
    "composes_with",
    "script_args",
    "type",
    "auth_strategy",
    "initial_permissions",
    "available_permissions",
)
_INTO_METADATA = ("version", "author", "compatibility", "tags", "category", "homepage")


def normalise(given: Mapping[str, object], report: Report, *, called: str, ours: bool) -> dict[str, object]:
    """Return the front matter that our format knows. `called`: the folder's name, used where front matter has none."""
    meta = {key: given[key] for key in (*_KEPT, *_OURS) if key in given}
    report.kept += sorted(meta)
    _take_name(meta, report, called)
    _take_description(meta, report)
    _take_requirements(meta, report)
    _take_metadata(meta, given, report, ours=ours)
    _take_activation(meta, given, report)
    mapped = {*_KEPT, *_OURS, *_INTO_METADATA, "disable-model-invocation", "user-invocable", "dependencies"}
    report.removed += sorted(f"the key {key}" for key in map(str, given) if key not in mapped)
    return meta


def _take_name(meta: dict[str, object], report: Report, called: str) -> None:
    given = str(meta.get("name") or called)
    name = re.sub(r"-{2,}", "-", re.sub(r"[^a-z0-9]+", "-", given.lower())).strip("-")[:64].rstrip("-")
    if name != meta.get("name"):
        report.mapped.append(f"name: {given[:80]} became {name}")
    meta["name"] = name


def _take_description(meta: dict[str, object], report: Report) -> None:
    text = meta.get("description")
    if isinstance(text, str) and " ".join(text.split()) != text:
        meta["description"] = " ".join(text.split())
        report.mapped.append("description: written on one line")


def _take_requirements(meta: dict[str, object], report: Report) -> None:
    value = meta.get("requirements")
    if value is None or isinstance(value, dict):
        return
    del meta["requirements"]
    meta["metadata"] = {**_mapping(meta.get("metadata")), "requirements": value}
    report.mapped.append("requirements: kept as metadata; say under requirements which hosts and packages it needs")


def _take_metadata(meta: dict[str, object], given: Mapping[str, object], report: Report, *, ours: bool) -> None:
    metadata = _mapping(meta.get("metadata"))
    if not ours and "tools" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "tools"}
        report.removed.append("the key metadata.tools")
    for key in _INTO_METADATA:
        if key in given:
            metadata[key] = given[key]
            report.mapped.append(f"{key}: kept as metadata.{key}")
    if metadata or "metadata" in meta:
        meta["metadata"] = metadata
    packages = given.get("dependencies")
    if isinstance(packages, list) and packages:
        meta["requirements"] = {
            **_mapping(meta.get("requirements")),
            "packages": [str(package) for package in packages],
        }
        report.mapped.append("dependencies: kept as requirements.packages")


def _take_activation(meta: dict[str, object], given: Mapping[str, object], report: Report) -> None:
    """Map who may start the skill: only a person, or no caller at all."""
    if given.get("disable-model-invocation") is True:
        meta["activation"] = "manual"
        report.mapped.append("disable-model-invocation: activation manual")
    elif given.get("user-invocable") is False:
        meta["activation"] = "background"
        report.mapped.append("user-invocable: activation background")


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
