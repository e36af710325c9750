"""Import a skill from a signed package, an archive, a repository or pasted text.

Called outside of any scope because fetching can take a while. The result is a proposal, or a package whose publisher
has to be trusted first.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from apps.console.members import StaffRequest
from apps.skills import imports
from apps.skills.enums import PackageState, SkillSource
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

MAX_BYTES = 12_000_000
# The arguments of `redirect`.
Target = tuple[Any, ...]


def import_from_request(request: StaffRequest) -> Target:
    """Import what was sent and return where to continue: the skill's page, or the package's. Raises `SilasError`."""
    match request.POST.get("what", ""):
        case "archive":
            return _file(request)
        case "git":
            address, folder = request.POST.get("address", "")[:500].strip(), request.POST.get("path", "")[:200].strip()
            return _imported(request, imports.from_git(address, folder=folder))
        case "paste":
            text = request.POST.get("text", "").replace("\r\n", "\n")
            return _imported(request, imports.Fetched({"SKILL.md": text.encode()}, SkillSource.FOLDER, uri="pasted"))
        case _:
            raise SilasError(ErrorCode.NOTHING_IN_IT, _("Choose a source."))


def _file(request: StaffRequest) -> Target:
    sent = request.FILES.get("archive")
    if sent is None:
        raise SilasError(ErrorCode.NOTHING_IN_IT, _("Choose a file first."))
    raw = sent.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise SilasError(ErrorCode.TOO_LARGE, _("The file is larger than 12 MB."))
    if archive.is_package(raw):
        return _package(request, raw)
    return _imported(request, imports.from_archive(raw, name=str(sent.name or "")))


def _imported(request: StaffRequest, fetched: imports.Fetched) -> Target:
    """Adapt the skill and propose it."""
    with tenant_scope(request.member.tenant):
        hint = request.POST.get("format", "")
        version = imports.import_skill(fetched, by=request.member.user, format_hint=hint)
    return ("console-skill", version.name)


def _package(request: StaffRequest, raw: bytes) -> Target:
    package = archive.unpack(raw)
    with tenant_scope(request.member.tenant):
        row = packages.receive(package, by=request.member.user)
    if row.state == PackageState.WAITING:
        return ("console-skill-package", row.pk)
    return ("console-skill", row.name)
