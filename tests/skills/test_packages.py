"""A package is accepted whole, from a trusted key, and never older than an earlier one; else nothing of it is kept."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from apps.skills.enums import PackageState, SkillSource, SkillStatus
from apps.skills.models import SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder
from tests.factories.tenants import make_member, make_tenant

Contents = dict[str, bytes]


def repacked(raw: bytes, change: Callable[[Contents], Any], **options: Any) -> bytes:
    """The same package with other contents, as an attacker in the middle would make it."""
    with zipfile.ZipFile(io.BytesIO(raw)) as opened:
        contents = {name: opened.read(name) for name in opened.namelist()}
    change(contents)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", options.get("compression", zipfile.ZIP_STORED)) as again:
        for name, content in contents.items():
            again.writestr(name, content)
    return out.getvalue()


class Publisher:
    """Another installation's company that exports a skill."""

    def __init__(self, tmp_path: Any) -> None:
        self.tenant, self.tmp_path = make_tenant(name="Acme Tools"), tmp_path

    def package(self, note: str = "first") -> bytes:
        version = install(self.tenant, make_folder(self.tmp_path, files={"references/note.md": note}))
        with tenant_scope(self.tenant):
            return packages.export_version(version.pk, actor="user:test")


@pytest.fixture
def publisher(database: None, tmp_path: Any) -> Publisher:
    return Publisher(tmp_path)


@pytest.fixture
def raw(publisher: Publisher) -> bytes:
    return publisher.package()


def take_in(tenant: Any, raw: bytes, by: Any) -> SkillPackage:
    package = archive.unpack(raw)
    with tenant_scope(tenant):
        return packages.receive(package, by=by)


def trusted(tenant: Any, raw: bytes, by: Any) -> SkillPackage:
    row, package = take_in(tenant, raw, by), archive.unpack(raw)
    with tenant_scope(tenant):
        return packages.trust_publisher(row.pk, archive.fingerprint(row.public_key), package, by=by)


def test_export_twice_is_the_same_bytes(publisher: Publisher, raw: bytes) -> None:
    with tenant_scope(publisher.tenant):
        version = SkillVersion.objects.get()
        assert packages.export_version(version.pk, actor="user:test") == raw


def test_export_of_what_is_not_in_use_is_refused(publisher: Publisher, raw: bytes) -> None:
    with tenant_scope(publisher.tenant):
        version = SkillVersion.objects.get()
        SkillVersion.objects.filter(pk=version.pk).update(status=SkillStatus.DISABLED)
        with pytest.raises(SilasError) as refusal:
            packages.export_version(version.pk, actor="user:test")
    assert refusal.value.code == "skill_not_active"


def _change_script(contents: Contents) -> None:
    contents["skill/scripts/look.py"] += b"\nprint('more')"


def _change_manifest(contents: Contents) -> None:
    contents["package.json"] = contents["package.json"].replace(b"Acme", b"Evil")


def _swap_key(contents: Contents) -> None:
    at = contents["package.json"].index(b'"public_key":"') + 14
    contents["package.json"] = contents["package.json"][:at] + b"0" * 64 + contents["package.json"][at + 64 :]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_change_script, "package_tampered"),
        (_change_manifest, "package_signature"),
        (_swap_key, "package_signature"),
        (lambda contents: contents.update({"package.sig": b"AAAA"}), "package_signature"),
        (lambda contents: contents.pop("package.sig"), "package_signature"),
        (lambda contents: contents.pop("skill/scripts/act.py"), "package_incomplete"),
        (lambda contents: contents.update({"skill/scripts/extra.py": b"x"}), "package_extra_file"),
        (lambda contents: contents.update({"README.md": b"x"}), "package_extra_file"),
        (lambda contents: contents.update({"skill/../../etc/passwd": b"x"}), "package_unreadable"),
        (lambda contents: contents.pop("package.json"), "package_unreadable"),
        (lambda contents: contents.update({"package.json": contents["package.json"] + b" "}), "package_unreadable"),
    ],
)
def test_package_that_is_not_as_it_was_signed_is_refused(
    tenant: Any, owner: Any, raw: bytes, change: Callable[[Contents], Any], code: str
) -> None:
    with pytest.raises(SilasError) as refusal:
        take_in(tenant, repacked(raw, change), owner)
    with tenant_scope(tenant):
        assert refusal.value.code == code
        assert SkillPackage.objects.count() == 0


@pytest.mark.parametrize("garbage", [b"", b"PK\x03\x04", b"x" * 1000], ids=["empty", "half", "noise"])
def test_garbage_is_no_package(garbage: bytes) -> None:
    with pytest.raises(SilasError, match="valid skill package"):
        archive.unpack(garbage)


def test_compressed_package_is_refused_before_it_is_unpacked(raw: bytes) -> None:
    bomb = repacked(raw, lambda contents: contents.update({"skill/big": bytes(5_000_000)}), compression=8)
    with pytest.raises(SilasError, match="is compressed"):
        archive.unpack(bomb)


def test_unknown_publisher_waits_for_a_person(tenant: Any, owner: Any, raw: bytes) -> None:
    row = take_in(tenant, raw, owner)
    with tenant_scope(tenant):
        assert row.state == PackageState.WAITING
        assert SkillVersion.objects.count() == 0


def test_wrong_fingerprint_pins_nothing(tenant: Any, owner: Any, raw: bytes) -> None:
    row, package = take_in(tenant, raw, owner), archive.unpack(raw)
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        packages.trust_publisher(row.pk, "0000 " * 8, package, by=owner)
    with tenant_scope(tenant):
        assert refusal.value.code == "fingerprint_differs"
        assert TrustedPublisher.objects.count() == 0


def test_pinned_package_is_proposed_and_not_in_use(tenant: Any, owner: Any, raw: bytes) -> None:
    row = trusted(tenant, raw, owner)
    with tenant_scope(tenant):
        version = SkillVersion.objects.get()
        assert row.version_id == version.pk
        assert version.status == SkillStatus.PROPOSED
        assert version.source == SkillSource.PACKAGE
        assert SkillPackage.objects.get().content is None


def test_next_package_of_a_pinned_key_is_proposed_at_once(
    tenant: Any, owner: Any, raw: bytes, publisher: Publisher
) -> None:
    trusted(tenant, raw, owner)
    assert take_in(tenant, publisher.package("second"), owner).state == PackageState.TAKEN


@pytest.mark.parametrize("known", [True, False], ids=["at once", "while it waited"])
def test_older_package_after_a_newer_one_is_a_replay(
    tenant: Any, owner: Any, raw: bytes, publisher: Publisher, known: bool
) -> None:
    package = archive.unpack(raw)
    fingerprint = package.manifest.fingerprint
    waiting = None if known else take_in(tenant, raw, owner)
    trusted(tenant, publisher.package("second"), owner)
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        packages.trust_publisher(waiting.pk, fingerprint, package, by=owner) if waiting else packages.receive(
            package, by=owner
        )
    assert refusal.value.code == "package_replayed"


def test_package_of_somebody_else_with_the_same_name_waits(tenant: Any, owner: Any, raw: bytes, tmp_path: Any) -> None:
    trusted(tenant, raw, owner)
    assert take_in(tenant, Publisher(tmp_path).package("mine"), owner).state == PackageState.WAITING


def test_key_that_is_pinned_no_longer_makes_the_next_package_wait(
    tenant: Any, owner: Any, raw: bytes, publisher: Publisher
) -> None:
    trusted(tenant, raw, owner)
    with tenant_scope(tenant):
        packages.distrust_publisher(TrustedPublisher.objects.get().pk, actor="user:test")
    assert take_in(tenant, publisher.package("second"), owner).state == PackageState.WAITING


def test_package_that_is_thrown_away_keeps_no_bytes(tenant: Any, owner: Any, raw: bytes) -> None:
    row = take_in(tenant, raw, owner)
    with tenant_scope(tenant):
        packages.refuse_package(row.pk, actor="user:test")
        kept = SkillPackage.objects.get()
    assert kept.state == PackageState.REFUSED
    assert kept.content is None


def test_other_bytes_than_those_that_wait_are_not_trusted(
    tenant: Any, owner: Any, raw: bytes, publisher: Publisher
) -> None:
    row, other = take_in(tenant, raw, owner), archive.unpack(publisher.package("second"))
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        packages.trust_publisher(row.pk, archive.fingerprint(row.public_key), other, by=owner)
    assert refusal.value.code == "not_found"


def test_package_of_another_company_is_not_there(tenant: Any, owner: Any, other_tenant: Any, raw: bytes) -> None:
    row, package = take_in(tenant, raw, owner), archive.unpack(raw)
    with pytest.raises(SilasError) as refusal, tenant_scope(other_tenant):
        packages.trust_publisher(
            row.pk, archive.fingerprint(row.public_key), package, by=make_member(other_tenant, "owner")
        )
    assert refusal.value.code == "not_found"
