"""How does a skill come in by the console? A signed package, an archive, a repository, or a pasted text.

Called outside of any scope: what is fetched takes its time. Whatever it is ends as a proposal, or as a package whose
publisher somebody has to look at first.
"""

from __future__ import annotations

from typing import Any

from apps.console.members import StaffRequest
from apps.skills import imports
from apps.skills.enums import PackageState, SkillSource
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

LARGEST = 12_000_000
Place = tuple[Any, ...]


def coming_in(request: StaffRequest) -> Place:
    """Where to go on: the skill's page, or the package's. Raises `SilasError`."""
    match request.POST.get("what", ""):
        case "archive":
            return _file(request)
        case "git":
            return _repository(request)
        case "paste":
            return _text(request)
        case _:
            raise SilasError("nothing_in_it", "Choose how it comes in.", status=422)


def _file(request: StaffRequest) -> Place:
    sent = request.FILES.get("archive")
    if sent is None:
        raise SilasError("nothing_in_it", "Choose a file first.", status=422)
    raw = sent.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise SilasError("too_large", "At most 12 MB at once.", status=413)
    if archive.is_package(raw):
        return _package(request, raw)
    return _imported(request, imports.from_archive(raw, name=str(sent.name or "")))


def _repository(request: StaffRequest) -> Place:
    address, folder = request.POST.get("address", "")[:500].strip(), request.POST.get("path", "")[:200].strip()
    return _imported(request, imports.from_git(address, folder=folder))


def _imported(request: StaffRequest, fetched: imports.Fetched) -> Place:
    """Adapted with its report, then proposed."""
    with tenant_scope(request.member.tenant):
        hint = request.POST.get("format", "")
        version = imports.import_skill(fetched, by=request.member.user, format_hint=hint)
    return ("console-skill", version.name)


def _package(request: StaffRequest, raw: bytes) -> Place:
    package = archive.unpack(raw)
    with tenant_scope(request.member.tenant):
        row = packages.receive(package, by=request.member.user)
    if row.state == PackageState.WAITING:
        return ("console-skill-package", row.pk)
    return ("console-skill", row.name)


def _text(request: StaffRequest) -> Place:
    text = request.POST.get("text", "").replace("\r\n", "\n")
    return _imported(request, imports.Fetched({"SKILL.md": text.encode()}, SkillSource.FOLDER, uri="pasted"))
