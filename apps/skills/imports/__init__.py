"""Import foreign skills: fetched from a folder, an archive or a git repository, adapted to our format with a report of
all changes, and proposed for approval (spec 10.4.1).

`sources` fetches within hard limits and trusts nothing, `adapter` is a pure function of what was fetched, and
`installation.propose` does the rest. Called by the console, REST and `manage.py import_skill`, outside of any
transaction: fetching waits on the network.
"""

from __future__ import annotations

from apps.skills import installation
from apps.skills.imports.adapter import adapt
from apps.skills.imports.sources import MAX_ARCHIVE_BYTES, Fetched, from_archive, from_folder, from_git
from apps.skills.models import SkillVersion
from apps.tenants.models import User

__all__ = ["MAX_ARCHIVE_BYTES", "Fetched", "adapt", "from_archive", "from_folder", "from_git", "import_skill"]


def import_skill(fetched: Fetched, *, by: User | str | None = None, format_hint: str = "") -> SkillVersion:
    """Adapt what was fetched and propose it, inside the caller's scope. `format_hint`: silas, openai or claude; else it
    is detected. `by`: a member, or an actor's name.

    Raises `SilasError`: `format_unknown`, and what `installation.propose` raises (`skill_invalid` with `extra.report`).
    """
    adapted = adapt(fetched, format_hint=format_hint)
    return installation.propose(adapted.files, source=fetched.source, by=by, report=adapted.report)
