"""Bring skills into use and take them out again. Inside the caller's scope.

A proposed version is never found until a person approved exactly this content, that approval was spent, and its scripts
passed a trial; any other byte is another version that needs another approval (spec 10.4). A version that was in use
once may be switched off and on again; its content never changes. Console, REST, import and skill-maker use this; what
ships with the installation does not (`services.install_version`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.skills import signals, trials
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.loader import Folder, load_files
from apps.skills.locks import lock_skill
from apps.skills.models import SkillVersion
from apps.skills.services import audit_data, change_status, find_version, store_version
from apps.tenants.enums import Capability, Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

MAX_WAITING = 50
PROPOSERS = roles_with(Capability.DECIDE)
ADMINISTRATORS = roles_with(Capability.ADMINISTER)


def propose(
    files: Mapping[str, bytes],
    *,
    source: SkillSource | str,
    by: User | str | None = None,
    report: Mapping[str, object] | None = None,
) -> SkillVersion:
    """Check the contents of a skill's folder (paths from its root, `SKILL.md` among them) and propose them for
    approval.

    Returns the version, `proposed`; workers try its scripts and a card is opened (`trials`). When exactly this content
    is proposed or in use already, returns that version as it is. `by`: the requesting member, or an actor by name; None
    for the system. `report`: what the source of the files reports (an import's transformation report), kept under
    `origin`.

    Raises `SilasError`: `skill_invalid` with every problem in `extra`, `skill_disabled` 409 when this content was
    switched off (`roll_back` brings it back), `skills_waiting` 409, `forbidden_role` 403.
    """
    _require(by, PROPOSERS)
    folder = load_files(files)
    existing = find_version(folder)
    if existing is None or existing.status == SkillStatus.WITHDRAWN:
        return _propose_version(folder, existing, SkillSource(source), by, report)
    if existing.status == SkillStatus.DISABLED:
        raise SilasError(
            ErrorCode.SKILL_DISABLED,
            gettext("Version {number} has this content and is disabled.").format(number=existing.number),
        )
    return existing


def _propose_version(
    folder: Folder,
    existing: SkillVersion | None,
    source: SkillSource,
    by: User | str | None,
    report: Mapping[str, object] | None,
) -> SkillVersion:
    if SkillVersion.objects.filter(status=SkillStatus.PROPOSED).count() >= MAX_WAITING:
        raise SilasError(
            ErrorCode.SKILLS_WAITING,
            gettext("{max_waiting} skills are already waiting for approval.").format(max_waiting=MAX_WAITING),
        )
    lock_skill(folder.manifest.name)
    fields = {
        "requested_by": _actor(by) if by else "",
        "report": {"origin": dict(report or {}), "notes": list(folder.notes)},
    }
    if existing is None:
        version = store_version(folder, status=SkillStatus.PROPOSED, source=source, **fields)
    else:
        version = change_status(
            existing, SkillStatus.PROPOSED, source=source, **fields, card_id=None, approval_token=None
        )
    record(AuditEvent.SKILL_PROPOSED, actor=_actor(by), subject=f"skill:{version.pk}", data=audit_data(version))
    trials.enqueue_trial(version)
    return version


def disable(skill: SkillVersion | str, *, by: User | str | None = None) -> int:
    """Switch off a version, or by its name every version in use; work that was approved with it no longer finds it.
    Returns how many were switched off. Raises `SilasError` `forbidden_role` 403."""
    _require(by, ADMINISTRATORS)
    if isinstance(skill, str):
        versions = lock_skill(skill)
    else:
        versions = [version for version in lock_skill(skill.name) if version.pk == skill.pk]
    return _switch_off([version for version in versions if version.status == SkillStatus.ACTIVE], by)


def roll_back(name: str, *, to: SkillVersion, by: User | str | None = None) -> SkillVersion:
    """Make a version that was in use before the only one in use. It needs no new approval: its content had one.

    Raises `SilasError`: `skill_not_approved` 409 for one that never was in use, `NotFound`, `forbidden_role` 403.
    """
    _require(by, ADMINISTRATORS)
    versions = lock_skill(name)
    wanted = next((version for version in versions if version.pk == to.pk), None)
    if wanted is None:
        raise NotFound()
    if wanted.status not in (SkillStatus.ACTIVE, SkillStatus.DISABLED):
        raise SilasError(ErrorCode.SKILL_NOT_APPROVED)
    _switch_off(
        [version for version in versions if version.status == SkillStatus.ACTIVE and version.pk != wanted.pk], by
    )
    if wanted.status == SkillStatus.DISABLED:
        change_status(wanted, SkillStatus.ACTIVE, activated_at=now())
    record(AuditEvent.SKILL_ROLLED_BACK, actor=_actor(by), subject=f"skill:{wanted.pk}", data=audit_data(wanted))
    return wanted


def purge(name: str, *, by: User | str | None = None) -> int:
    """Switch the skill off and delete what was written with it: findings, proposals, what became memory or knowledge,
    and what memory keeps of its tools' answers (`signals.skill_purged`). Its versions stay as evidence. Returns how
    many were switched off.

    Raises `SilasError` `forbidden_role` 403, `NotFound`.
    """
    _require(by, ADMINISTRATORS)
    versions = lock_skill(name)
    if not versions:
        raise NotFound()
    count = _switch_off([version for version in versions if version.status == SkillStatus.ACTIVE], by)
    signals.skill_purged(name, _actor(by))
    record(AuditEvent.SKILL_PURGED, actor=_actor(by), subject=f"skill:{versions[-1].pk}", data=audit_data(versions[-1]))
    return count


def _switch_off(versions: list[SkillVersion], by: User | str | None) -> int:
    for version in versions:
        change_status(version, SkillStatus.DISABLED)
        record(AuditEvent.SKILL_DISABLED, actor=_actor(by), subject=f"skill:{version.pk}", data=audit_data(version))
    return len(versions)


def _require(by: User | str | None, roles: Collection[Role]) -> None:
    """Require the role of a member; an actor by name was authorized by the caller (an API key, the command line)."""
    if by is not None and not isinstance(by, str):
        require_role(by, roles)


def _actor(by: User | str | None) -> str:
    if isinstance(by, str):
        return by
    return f"user:{by.pk}" if by is not None else "system"
