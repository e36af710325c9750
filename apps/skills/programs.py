"""Provide the files of approved skills to tool servers that are programs."""

from __future__ import annotations

from apps.skills import queries, rules
from apps.toolservers.ports import Program


def program_of(ref: str) -> Program:
    """Return the version in use as a program. Raises `SilasError("skill_missing")`."""
    (version,) = queries.versions([ref])
    paths = version.files.filter(path__startswith="scripts/", path__endswith=".py").values_list("path", flat=True)
    places = rules.egress_of(queries.manifest_of(version).requirements.network)
    return Program(queries.pinned_ref(version), queries.folder_of(version), frozenset(paths), places)
