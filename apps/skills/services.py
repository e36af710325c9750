"""Install bundled skills, change a version's status, and change records. Inside the caller's scope.

Changes of records are applied in the transaction that settles the call which decided them, and only on the revision the
script saw; otherwise none of them happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path

from django.db import IntegrityError
from django.db.models import F, Max
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.integrity import is_bundled, sealed_value
from apps.skills.loader import Folder, load_folder
from apps.skills.models import TRANSITIONS, Record, SkillFile, SkillVersion
from apps.skills.schemas import Change, CreateChange, SetChange
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def install_version(path: Path) -> SkillVersion:
    """Store the folder as a version that is in use at once, or return the version with exactly this content.

    Only for what ships with the installation or with a demo, which the operator trusts; everything else goes through
    `installation.propose`. Raises `SilasError`: `skill_invalid`; `skill_not_bundled` 409.
    """
    return install_folder(load_folder(path))


def install_folder(folder: Folder) -> SkillVersion:
    """`install_version` for a folder that is loaded already."""
    existing = find_version(folder)
    if existing:
        return existing
    if not is_bundled(folder.manifest.name, folder.digest):
        raise SilasError(
            ErrorCode.SKILL_NOT_BUNDLED,
            gettext("The folder {name} isn't part of this release. Propose it instead.").format(
                name=folder.manifest.name
            ),
        )
    version = store_version(folder, status=SkillStatus.ACTIVE, source=SkillSource.BUNDLED)
    record(AuditEvent.SKILL_INSTALLED, subject=f"skill:{version.pk}", data=audit_data(version))
    return version


def find_version(folder: Folder) -> SkillVersion | None:
    """Return the version with exactly this content, of any status."""
    version: SkillVersion | None = SkillVersion.objects.filter(name=folder.manifest.name, digest=folder.digest).first()
    return version


def store_version(folder: Folder, *, status: SkillStatus, source: SkillSource, **fields: object) -> SkillVersion:
    """Store the next version of its skill, with its files."""
    name = folder.manifest.name
    number = (SkillVersion.objects.filter(name=name).aggregate(last=Max("number"))["last"] or 0) + 1
    if status == SkillStatus.ACTIVE:
        fields["activated_at"] = now()
    version: SkillVersion = SkillVersion.objects.create(
        name=name,
        digest=folder.digest,
        manifest=folder.manifest.model_dump(mode="json"),
        body=folder.body,
        number=number,
        status=status,
        source=source,
        **fields,
    )
    SkillFile.objects.bulk_create(
        [SkillFile(version=version, path=path, content=content) for path, content in folder.files.items()]
    )
    if status == SkillStatus.ACTIVE:
        policy_seals.seal_item(PolicyKind.SKILLS, str(version.pk), sealed_value(version))
    return version


def change_status(version: SkillVersion, status: SkillStatus, **fields: object) -> SkillVersion:
    """One step of its course, only from where the caller saw it; what is in use is sealed (apps.tenants.policy_seals).

    Raises `SilasError`: `skill_moved` 409; when it comes into use or out of it, as `policy_seals.seal_item`.
    """
    before = SkillStatus(version.status)
    if status not in TRANSITIONS[before]:
        raise SilasError(
            ErrorCode.SKILL_MOVED,
            gettext("A skill can't change from {before} to {status}.").format(before=before, status=status),
        )
    changed = SkillVersion.objects.filter(pk=version.pk, status=before).update(status=status, **fields)
    if not changed:
        raise SilasError(ErrorCode.SKILL_MOVED, gettext("Someone else has changed this skill. Reload and try again."))
    version.refresh_from_db()
    if status == SkillStatus.ACTIVE:
        policy_seals.seal_item(PolicyKind.SKILLS, str(version.pk), sealed_value(version))
    elif status == SkillStatus.DISABLED:
        policy_seals.remove_item(PolicyKind.SKILLS, str(version.pk))
    return version


def audit_data(version: SkillVersion) -> dict[str, object]:
    """Return what the audit log says of a version."""
    return {"skill": version.name, "digest": version.digest, "number": version.number}


def save_record(book: str, key: str, *, subject: str, data: Mapping[str, object]) -> Record:
    """Create or change the tenant's own record, as an import of their data would; a changed record gets the next
    revision."""
    row: Record
    row, created = Record.objects.get_or_create(book=book, key=key, defaults={"subject": subject, "data": dict(data)})
    if not created and (row.data != data or row.subject != subject):
        Record.objects.filter(pk=row.pk).update(
            subject=subject, data=dict(data), revision=F("revision") + 1, updated_at=Now()
        )
        row.refresh_from_db()
    return row


def apply_changes(
    changes: Iterable[Change],
    *,
    customer: str,
    effect_key: str,
    expected: MutableMapping[tuple[str, str], int] | None = None,
    left: MutableMapping[tuple[str, str], int] | None = None,
) -> None:
    """Apply what a tool's run decided, all of it or, by raising, nothing.

    `expected`: the revisions of the records that a person was shown, by book and key, 0 for none; they are locked and
    compared first, and follow the change. `left`: filled with the revisions at which this leaves the records that it
    changes.

    Raises `SilasError`: `record_changed` when a record is not as the script saw it (or is not the customer's),
    `record_exists` when a new record's key is taken.
    """
    require_unchanged(expected or {}, customer)
    if left is not None:
        left.clear()
    for change in changes:
        if expected and (change.book, change.key) in expected:
            expected[change.book, change.key] += 1
        if isinstance(change, SetChange):
            _set(change, customer)
        else:
            _create(change)
        if left is not None:
            left[change.book, change.key] = change.revision + 1 if isinstance(change, SetChange) else 1
        data = {"book": change.book, "key": change.key, "effect": effect_key[:120]}
        record(AuditEvent.RECORD_CHANGED, subject=f"record:{change.book}/{change.key}", data=data)


def require_unchanged(expected: Mapping[tuple[str, str], int], customer: str) -> None:
    """Raises `SilasError("record_changed")` when one of these records is not at the revision that was shown; another
    customer's record counts as none."""
    for (book, key), revision in sorted(expected.items()):
        visible = Record.objects.filter(book=book, key=key, subject__in={"", customer})
        row = visible.select_for_update(no_key=True).first()
        if (row.revision if row else 0) != revision:
            raise SilasError(
                ErrorCode.RECORD_CHANGED, gettext("The record has changed since it was shown for approval.")
            )


def _set(change: SetChange, customer: str) -> None:
    """Change a record, locked by key, revision and owner at once; without a customer no record matches."""
    wanted = Record.objects.select_for_update(no_key=True).filter(book=change.book, key=change.key, subject=customer)
    row = wanted.filter(revision=change.revision).exclude(subject="").first()
    if row is None:
        raise SilasError(ErrorCode.RECORD_CHANGED, gettext("Someone else has changed this record."))
    row.data = {**row.data, **change.set}
    Record.objects.filter(pk=row.pk).update(data=row.data, revision=F("revision") + 1, updated_at=Now())


def _create(change: CreateChange) -> None:
    if Record.objects.filter(book=change.book, key=change.key).exists():
        raise SilasError(ErrorCode.RECORD_EXISTS)
    try:
        Record.objects.create(book=change.book, key=change.key, subject=change.subject, data=change.create)
    except IntegrityError as error:
        raise SilasError(ErrorCode.RECORD_EXISTS) from error
