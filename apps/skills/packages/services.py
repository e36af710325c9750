"""Export packages, and receive those that come. Inside the caller's scope, in a web process.

A package is accepted when it is complete, signed by a key that a person of the company pinned, and no older than what
came from that key before. Then it is proposed like any other skill: nothing of it runs before an approval.
"""

from __future__ import annotations

import hmac
import re
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.skills import installation
from apps.skills.enums import PackageState, SkillSource, SkillStatus
from apps.skills.models import SkillFile, SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive, keys
from apps.skills.packages.archive import Package, PackageManifest
from apps.tenants.models import Tenant, User
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id


def export_version(version_id: UUID, *, actor: str) -> bytes:
    """Return the version as one signed file; the same bytes each time. Raises `SilasError("skill_not_active")` 409."""
    version: SkillVersion | None = SkillVersion.objects.filter(pk=version_id).first()
    if version is None:
        raise NotFound()
    if version.status != SkillStatus.ACTIVE:
        raise SilasError(ErrorCode.SKILL_NOT_ACTIVE)
    key = keys.signing_key()
    files = dict(SkillFile.objects.filter(version=version).values_list("path", "content"))
    raw = archive.pack(
        version.name,
        version.number,
        {path: bytes(content) for path, content in files.items()},
        publisher=Tenant.objects.get(pk=current_tenant_id()).name[:120],
        public_key=key.public_key().public_bytes_raw(),
        sign=key.sign,
    )
    record(AuditEvent.SKILL_EXPORTED, actor=actor, subject=f"skill:{version.pk}", data={"number": version.number})
    return raw


def receive(package: Package, *, by: User) -> SkillPackage:
    """Take in a package, as `archive.unpack` read it: propose it, or keep it until a person trusts its publisher.

    Raises `package_replayed` 409 and what `installation.propose` raises.
    """
    manifest = package.manifest
    _require_newer(manifest)
    row: SkillPackage = SkillPackage.objects.create(
        name=manifest.name,
        number=manifest.number,
        digest=manifest.digest,
        public_key=manifest.public_key,
        publisher=manifest.publisher,
        content=package.raw,
        by=_actor(by),
    )
    record(AuditEvent.SKILL_PACKAGE_CAME, actor=row.by, subject=_package(row), data={"number": row.number})
    return _propose(row, package, by) if is_trusted(manifest.public_key) else row


def trust_publisher(package_id: UUID, fingerprint: str, package: Package, *, by: User) -> SkillPackage:
    """Pin the key of a waiting package by the fingerprint that this person saw, and propose the package. `package`: its
    bytes, as `archive.unpack` read them.

    Raises `SilasError`: `fingerprint_differs` 409, `package_replayed` 409, and what `installation.propose` raises.
    """
    row = _lock_waiting(package_id)
    if bytes(row.content or b"") != package.raw:
        raise NotFound()
    expected = "".join(package.manifest.fingerprint.split())
    if not hmac.compare_digest(expected, "".join(fingerprint.split()).lower().encode("ascii", "replace").decode()):
        raise SilasError(
            ErrorCode.FINGERPRINT_DIFFERS, gettext("This isn't the fingerprint of the key that signed the package.")
        )
    TrustedPublisher.objects.get_or_create(
        public_key=row.public_key, defaults={"name": row.publisher, "trusted_by": _actor(by)}
    )
    record(AuditEvent.PUBLISHER_TRUSTED, actor=_actor(by), subject=_package(row), data={"key": expected[:16]})
    _require_newer(package.manifest, other_than=row)
    return _propose(row, package, by)


def parse_public_key(public_key: str) -> str:
    """Raises `SilasError("key_unreadable")` 422 for what is no public key."""
    key = "".join(public_key.split()).lower()
    if not re.fullmatch(r"[0-9a-f]{64}", key):
        raise SilasError(ErrorCode.KEY_UNREADABLE)
    return key


def pin_publisher(public_key: str, *, name: str, last: str, by: User) -> TrustedPublisher:
    """Pin a key before anything came from it; `last`: the end of its fingerprint, as this person typed it.

    Raises `SilasError`: `key_unreadable` 422, `publisher_name` 422, `fingerprint_differs` 409.
    """
    key, name = parse_public_key(public_key), " ".join(name.split())[:120]
    if not name:
        raise SilasError(ErrorCode.PUBLISHER_NAME)
    fingerprint = archive.fingerprint(key)
    if last.strip().lower() != fingerprint.split()[-1]:
        raise SilasError(
            ErrorCode.FINGERPRINT_DIFFERS, gettext("These aren't the last four characters of the fingerprint.")
        )
    row: TrustedPublisher = TrustedPublisher.objects.get_or_create(
        public_key=key, defaults={"name": name, "trusted_by": _actor(by)}
    )[0]
    data = {"key": "".join(fingerprint.split())[:16]}
    record(AuditEvent.PUBLISHER_TRUSTED, actor=_actor(by), subject=f"publisher:{row.pk}", data=data)
    return row


def refuse_package(package_id: UUID, *, actor: str) -> None:
    """Refuse a waiting package and delete its bytes."""
    row = _lock_waiting(package_id)
    _close(row, PackageState.REFUSED)
    record(AuditEvent.SKILL_PACKAGE_REFUSED, actor=actor, subject=_package(row), data={})


def distrust_publisher(publisher_id: UUID, *, actor: str) -> None:
    """Remove a pinned key: what comes from it from now on waits again, what was installed stays."""
    row = TrustedPublisher.objects.filter(pk=publisher_id).first()
    if row is None:
        raise NotFound()
    data = {"key": "".join(archive.fingerprint(row.public_key).split())[:16]}
    row.delete()
    record(AuditEvent.PUBLISHER_DISTRUSTED, actor=actor, subject=f"publisher:{publisher_id}", data=data)


def is_trusted(public_key: str) -> bool:
    return keys.is_ours(public_key) or bool(TrustedPublisher.objects.filter(public_key=public_key).exists())


def _require_newer(manifest: PackageManifest, *, other_than: SkillPackage | None = None) -> None:
    """Refuse an old package, so that it cannot bring back what was fixed since. One package of a skill at a time."""
    with connection.cursor() as cursor:
        lock_name = f"skill_package:{current_tenant_id()}:{manifest.name}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [lock_name])
    accepted = SkillPackage.objects.filter(
        name=manifest.name, public_key=manifest.public_key, state=PackageState.TAKEN, number__gte=manifest.number
    )
    others = accepted.exclude(pk=other_than.pk) if other_than else accepted
    newest = others.order_by("-number", "-created_at").first()
    if newest and (newest.number > manifest.number or newest.digest != manifest.digest):
        raise SilasError(
            ErrorCode.PACKAGE_REPLAYED,
            extra={"number": manifest.number, "newest": newest.number},
        )


def _propose(row: SkillPackage, package: Package, by: User) -> SkillPackage:
    manifest = package.manifest
    origin = {"publisher": manifest.publisher, "fingerprint": manifest.fingerprint, "number": manifest.number}
    row.version = installation.propose(package.files, source=SkillSource.PACKAGE, by=by, report={"package": origin})
    _close(row, PackageState.TAKEN)
    return row


def _close(row: SkillPackage, state: PackageState) -> None:
    row.state, row.content = state, None
    SkillPackage.objects.filter(pk=row.pk).update(state=state, content=None, version_id=row.version_id, ended_at=Now())


def _lock_waiting(package_id: UUID) -> SkillPackage:
    rows = SkillPackage.objects.select_for_update(no_key=True)
    row: SkillPackage | None = rows.filter(pk=package_id, state=PackageState.WAITING).first()
    if row is None:
        raise NotFound()
    return row


def _actor(by: User) -> str:
    return str(by.actor) if by is not None else "system"


def _package(row: SkillPackage) -> str:
    return f"skill_package:{row.pk}"
