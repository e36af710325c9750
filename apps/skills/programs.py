"""Which of a skill's files may run as a tool server? Those of a version that a person approved, by its hash."""

from __future__ import annotations

from apps.skills import queries, rules
from apps.toolservers.ports import Program


def program_of(ref: str) -> Program:
    """Raises `SilasError("skill_missing")`."""
    (version,) = queries.versions([ref])
    paths = version.files.filter(path__startswith="scripts/", path__endswith=".py").values_list("path", flat=True)
    places = rules.egress_of(queries.manifest_of(version).requirements.network)
    return Program(queries.pinned_ref(version), queries.folder_of(version), frozenset(paths), places)
