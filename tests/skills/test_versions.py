"""Versions are found by content, unpacked as they were installed, and belong to one tenant."""

import stat

import pytest
from django.db import DatabaseError

from apps.skills import queries, store
from apps.skills.models import Record, SkillFile, SkillVersion
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder, save_record


@pytest.fixture
def version(tenant, tmp_path):
    return install(tenant, make_folder(tmp_path))


def test_install_same_content_twice_is_one_version(tenant, tmp_path, version):
    assert install(tenant, tmp_path / "test-desk").pk == version.pk


def test_install_changed_content_is_the_next_version(tenant, tmp_path, version):
    assert install(tenant, make_folder(tmp_path, files={"references/a.md": "new"})).number == version.number + 1


@pytest.mark.parametrize("model", [SkillVersion, SkillFile])
def test_version_cannot_be_rewritten(tenant, version, model):
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        model.objects.update(created_at=None) if model is SkillVersion else model.objects.update(content=b"x")


def test_version_cannot_be_deleted(tenant, version):
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        SkillFile.objects.all().delete()


def test_tools_carry_the_pinned_reference(tenant, version):
    with tenant_scope(tenant):
        tools = queries.tools_for(["test-desk"])
    assert {tool.skill for tool in tools} == {f"test-desk@{version.digest[:16]}"}


def test_tools_of_a_pinned_reference_are_those_of_that_content(tenant, tmp_path, version):
    install(tenant, make_folder(tmp_path, tools=[]))
    with tenant_scope(tenant):
        assert [len(queries.tools_for([ref])) for ref in ("test-desk", f"test-desk@{version.digest[:16]}")] == [0, 2]


@pytest.mark.parametrize("ref", ["other-desk", "test-desk@0000000000000000", "test-desk@", "test-desk@a"])
def test_tools_of_an_unknown_reference_are_refused(tenant, version, ref):
    if ref == "test-desk@":
        ref = "test-desk@" + version.digest[:3]
    with tenant_scope(tenant), pytest.raises(SilasError, match="not installed"):
        queries.tools_for([ref])


def test_tools_of_another_tenant_are_unknown(other_tenant, version):
    with tenant_scope(other_tenant), pytest.raises(SilasError, match="not installed"):
        queries.tools_for(["test-desk"])


def test_folder_lies_on_disk_as_installed(tenant, version):
    with tenant_scope(tenant):
        folder = queries.folder_of(version)
    assert (folder / "checks/done.py").read_text() == "print('done')"


def test_folder_on_disk_is_read_only(tenant, version):
    with tenant_scope(tenant):
        folder = queries.folder_of(version)
    assert stat.S_IMODE((folder / "scripts/act.py").stat().st_mode) == 0o444


def test_folder_that_was_tampered_with_is_unpacked_anew(tenant, version):
    with tenant_scope(tenant):
        script = queries.folder_of(version) / "scripts/act.py"
    script.chmod(0o644)
    script.write_text("print('mine')")
    store._checked.clear()
    with tenant_scope(tenant):
        assert (queries.folder_of(version) / "scripts/act.py").read_text() != "print('mine')"


def test_folder_with_an_extra_file_is_unpacked_anew(tenant, version):
    with tenant_scope(tenant):
        folder = queries.folder_of(version)
    folder.chmod(0o755)
    (folder / "extra.py").write_text("x")
    store._checked.clear()
    with tenant_scope(tenant):
        assert not (queries.folder_of(version) / "extra.py").exists()


def test_files_with_another_hash_are_refused():
    with pytest.raises(SilasError, match="differ from the installed"):
        store.unpack("f" * 64, lambda: {"SKILL.md": b"x"})


def test_rows_are_the_customers_and_nobodys(tenant):
    save_record(tenant, "orders", "H-1", subject="C-1")
    save_record(tenant, "orders", "H-2", subject="C-2")
    save_record(tenant, "orders", "H-3", subject="")
    with tenant_scope(tenant):
        assert [row["key"] for row in queries.records_for("C-1", ["orders"])["orders"]] == ["H-1", "H-3"]


def test_rows_without_a_customer_are_nobodys(tenant):
    save_record(tenant, "orders", "H-1", subject="C-1")
    with tenant_scope(tenant):
        assert queries.records_for("", ["orders"]) == {"orders": []}


def test_rows_of_another_book_are_not_exported(tenant):
    save_record(tenant, "claims", "CL-1", subject="C-1")
    with tenant_scope(tenant):
        assert queries.records_for("C-1", ["orders"]) == {"orders": []}


def test_record_saved_unchanged_keeps_its_revision(tenant):
    save_record(tenant, "orders", "H-1", total=1)
    save_record(tenant, "orders", "H-1", total=1)
    with tenant_scope(tenant):
        assert Record.objects.get().revision == 1


def test_record_saved_changed_gets_the_next_revision(tenant):
    save_record(tenant, "orders", "H-1", total=1)
    save_record(tenant, "orders", "H-1", total=2)
    with tenant_scope(tenant):
        assert Record.objects.get().revision == 2
        assert Record.objects.get().data == {"total": 2}
