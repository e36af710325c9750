"""Foreign skills are refused, or adapted with a report; they are never in use by themselves (spec 10.4.1)."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile

import pytest
import yaml

from apps.skills import imports, queries
from apps.skills.imports import Fetched, sources
from apps.skills.loader import load_files
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.skills import answer

FRONT = {
    "name": "Text Tools",
    "description": "Use when somebody wants to count the words of a text.",
    "allowed-tools": "Bash(python:*)",
    "hooks": {"PreToolUse": []},
    "version": "1.2",
}
COUNT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("text", help="what to count")
parser.add_argument("--least", type=int, default=1)
parser.add_argument("--loud", action="store_true")
parser.add_argument("--mark")
given = parser.parse_args()
print(len(given.text.split()))
"""


def skill(front=None, **files):
    head = yaml.safe_dump({**FRONT, **(front or {})})
    return {"SKILL.md": f"---\n{head}---\n\nCount.\n", "scripts/count.py": COUNT, **files}


def adapted(front=None, called="text-tools", hint="", **files):
    raw = {path: text.encode() for path, text in skill(front, **files).items()}
    return imports.adapt(Fetched(raw, sources.SkillSource.ARCHIVE, called=called), format_hint=hint)


def zipped(files, *, link="", how=zipfile.ZIP_DEFLATED):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", how) as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        if link:
            info = zipfile.ZipInfo("scripts/link.py")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, link)
    return raw.getvalue()


def tarred(files, *, member=None, mode="w:gz"):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        if member:
            archive.addfile(member)
    return raw.getvalue()


def member(kind, name="scripts/extra.py"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


def lying_zip(files):
    """A zip that claims its last file has ten bytes."""
    raw = bytearray(zipped(files))
    struct.pack_into("<I", raw, raw.rfind(b"PK\x01\x02") + 24, 10)
    return bytes(raw)


def lying_tar(size):
    """A tar of one file that claims to be this large, as tar writes what does not fit into its field."""
    header = bytearray(member(tarfile.REGTYPE, "SKILL.md").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = bytes([0o377 if size < 0 else 0o200]) + (size % (1 << 88)).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(1024)


def tar_with_long_header(length):
    """A tar with a header that applies to every later one, of digits that tarfile parses again for each of them."""
    head = member(tarfile.XHDTYPE, "pax")
    head.size, head.linkname = length, ""
    return head.tobuf() + b"1" * length + bytes(-length % 512) + tarred(skill(), mode="w")


HOSTILE = {
    "nothing": b"",
    "no archive": b"hello" * 100,
    "cut off": zipped(skill())[:-40],
    "no SKILL.md": zipped({"a.txt": "x"}),
    "path out": zipped({**skill(), "../evil.py": "x"}),
    "absolute path": tarred({**skill(), "/etc/evil": "x"}),
    "path out of a tar": tarred({**skill(), "a/../../evil": "x"}),
    "link in a zip": zipped(skill(), link="/etc/passwd"),
    "link in a tar": tarred(skill(), member=member(tarfile.SYMTYPE)),
    "hard link": tarred(skill(), member=member(tarfile.LNKTYPE)),
    "device": tarred(skill(), member=member(tarfile.CHRTYPE)),
    "10,000 files": zipped({**skill(), **{f"assets/{number}": "" for number in range(10_000)}}),
    "zip bomb": zipped({**skill(), "assets/big": "0" * 60_000_000}),
    "gzip bomb": tarred({**skill(), "assets/big": "0" * 60_000_000}),
    "zip bomb that lies": lying_zip({**skill(), "assets/big": "0" * 1_000_000}),
    "zip by bzip2, which is unpacked all at once": zipped(skill(), how=zipfile.ZIP_BZIP2),
    "zip by lzma, which is unpacked all at once": zipped(skill(), how=zipfile.ZIP_LZMA),
    "tar by bzip2": tarred(skill(), mode="w:bz2"),
    "tar by xz": tarred(skill(), mode="w:xz"),
    "tar that says it is huge": lying_tar(1 << 63),
    "tar that says it is less than nothing": lying_tar(-1024),
    "tar with a header that takes hours to read": tar_with_long_header(30_000),
    "gzip of a gzip": gzip.compress(tarred(skill())),
    "a file twice": tarred(skill(), member=member(tarfile.REGTYPE, "SKILL.md")),
    "too large": b"PK" + b"0" * sources.MAX_ARCHIVE_BYTES,
    "two skills": zipped({"a/SKILL.md": "x", "b/SKILL.md": "x"}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_archive_is_refused(what):
    with pytest.raises(SilasError) as refused:
        imports.from_archive(HOSTILE[what])
    assert refused.value.code == "import_refused"


def test_archive_in_an_archive_is_never_opened():
    bomb = zipped({"big": "0" * 1_000_000})
    assert imports.from_archive(zipped({**skill(), "assets/more.zip": bomb})).files["assets/more.zip"] == bomb


@pytest.mark.parametrize(
    "raw",
    [
        zipped(skill()),
        zipped(skill(), how=zipfile.ZIP_STORED),
        tarred(skill()),
        tarred(skill(), mode="w"),
        tar_with_long_header(1000),
    ],
)
def test_archive_in_order_is_read(raw):
    assert imports.from_archive(raw).files.keys() == skill().keys()


def test_archive_of_a_folder_is_read_below_it():
    raw = zipped({f"text-tools/{path}": text for path, text in skill().items()} | {"README.md": "x"})
    assert imports.from_archive(raw).called == "text-tools"


def test_archive_of_several_skills_gives_the_one_that_is_named():
    raw = zipped({"skills/a/SKILL.md": "x", "skills/b/SKILL.md": "y"})
    assert imports.from_archive(raw, folder="b").files == {"SKILL.md": b"y"}


def test_foreign_skill_is_valid_once_adapted():
    assert load_files(adapted().files).manifest.name == "text-tools"


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("removed", "the key allowed-tools"),
        ("removed", "the key hooks"),
        ("mapped", "name: Text Tools became text-tools"),
        ("mapped", "version: kept as metadata.version"),
        ("mapped", "scripts/count.py: takes text, least, loud, mark, as its code says"),
        ("kept", "description"),
    ],
)
def test_report_lists_what_was_done(where, what):
    assert what in adapted().report[where]


def test_arguments_are_read_off_the_code():
    args = load_files(adapted().files).manifest.script_args["scripts/count.py"]
    assert [(arg.type, arg.default, arg.optional, arg.passed) for arg in args.values()] == [
        ("string", None, False, "position"),
        ("integer", 1, False, "option"),
        ("boolean", False, False, "option"),
        ("string", None, True, "option"),
    ]


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"scripts/go.sh": "#!/bin/bash\necho $1 $2\n"}, "scripts/go.sh: started by scripts/go_sh.py"),
        ({"scripts/go.js": "x"}, "scripts/go.js is not Python: nothing runs it"),
        ({"scripts/odd.py": "import sys\nprint(sys.argv[1:])"}, "scripts/odd.py: what it takes cannot be read off it"),
        ({"scripts/odd.py": "import numpy\nprint(1)"}, "Needs numpy, which a sandbox does not have"),
        ({"scripts/odd.py": "import os\nprint(os.environ['API_KEY'])"}, "Reads API_KEY from its environment"),
        ({"agents/openai.yaml": "x: 1"}, "agents/openai.yaml (another platform's)"),
    ],
)
def test_report_lists_what_has_to_be_looked_at(files, line):
    report = adapted(**files).report
    assert any(said.startswith(line) for each in ("rewritten", "unresolved", "removed") for said in report[each])


@pytest.mark.parametrize(
    ("front", "files", "shape"),
    [
        ({}, {}, "claude"),
        ({"activation": "auto"}, {}, "silas"),
        ({}, {"agents/openai.yaml": "x: 1"}, "openai"),
    ],
)
def test_format_is_recognised(front, files, shape):
    assert adapted(front, **files).report["format"] == shape


def test_model_invocation_switched_off_is_manual():
    assert load_files(adapted({"disable-model-invocation": True}).files).manifest.activation == "manual"


def test_foreign_tools_that_act_are_left_out():
    report = adapted({"metadata": {"tools": [{"name": "act"}]}}, hint="claude").report
    assert "the key metadata.tools" in report["removed"]


def test_unknown_format_is_refused():
    with pytest.raises(SilasError, match="format"):
        adapted(hint="word")


def test_imported_skill_is_not_in_use_by_itself_and_is_after_an_approval(tenant, approver):
    fetched = imports.from_archive(zipped(skill()), name="tools.zip")
    with tenant_scope(tenant):
        version = imports.import_skill(fetched, by=approver)
        assert queries.current_version("text-tools") is None
    answer(tenant, version, approver)
    with tenant_scope(tenant):
        assert [tool.name for tool in queries.tools_for(["text-tools"])] == ["text_tools_count"]


def test_wrapped_shell_script_runs(tenant, approver):
    files = skill(**{"scripts/hello.sh": "#!/bin/sh\necho hello\n"})
    with tenant_scope(tenant):
        version = imports.import_skill(imports.from_archive(zipped(files)), by=approver)
    answer(tenant, version, approver)
    said = {trial["script"]: trial["said"] for trial in version.report["trial"]}
    assert said["scripts/hello_sh.py"] == "ran to its end"
