"""What comes back from out/: regular files, bounded, and never through a link."""

import pytest

OUT = "/sandbox/out"


def test_artifact_is_returned_byte_for_byte(python):
    result = python(f"open('{OUT}/a.bin', 'wb').write(bytes(range(256)))")
    assert result.artifacts == {"a.bin": bytes(range(256))}


def test_artifact_in_directory_keeps_its_path(python):
    result = python(f"import os; os.makedirs('{OUT}/x/y'); open('{OUT}/x/y/z', 'w').write('1')")
    assert result.artifacts == {"x/y/z": b"1"}


def test_artifact_survives_a_failed_command(python):
    result = python(f"open('{OUT}/a', 'w').write('1'); raise SystemExit(1)")
    assert result.artifacts == {"a": b"1"}


@pytest.mark.parametrize("target", ["/proc/self/environ", "/usr/bin/env", "../work/in.txt", "/sandbox/data/seen.txt"])
def test_symlink_in_out_is_not_followed(python, target):
    source = f"import os; os.symlink({target!r}, '{OUT}/link')"
    result = python(source, work={"in.txt": b"x"}, read_only={"data": {"seen.txt": b"x"}})
    assert result.ok
    assert result.artifacts == {}


def test_symlink_to_directory_is_not_followed(python):
    assert python(f"import os; os.symlink('/usr', '{OUT}/link')").artifacts == {}


def test_out_replaced_by_symlink_is_not_followed(python):
    source = """
import os
try:
    os.rename("/sandbox/out", "/sandbox/gone")
    os.symlink("/usr/share", "/sandbox/out")
except OSError:
    pass
"""
    assert python(source).artifacts == {}


def test_fifo_is_skipped_without_waiting(python):
    result = python(f"import os; os.mkfifo('{OUT}/pipe'); open('{OUT}/a', 'w').write('1')")
    assert result.artifacts == {"a": b"1"}


def test_socket_is_skipped(python):
    source = f"import socket; socket.socket(socket.AF_UNIX).bind('{OUT}/s')"
    assert python(source).artifacts == {}


def test_sparse_file_larger_than_the_limit_is_refused(python):
    result = python(f"open('{OUT}/a', 'wb').truncate(7 << 20); open('{OUT}/b', 'wb').truncate(7 << 20)", disk_mb=8)
    assert result.reason == "artifact_limit"
    assert result.artifacts == {}


def test_too_many_files_are_refused(python):
    result = python(f"for i in range(6): open(f'{OUT}/{{i}}', 'w').close()", artifact_files=5)
    assert result.reason == "artifact_limit"
    assert result.artifacts == {}


def test_deep_directories_are_refused(python):
    assert python(f"import os; os.makedirs('{OUT}' + '/d' * 50)").reason == "artifact_limit"


def test_many_links_are_refused(python):
    source = f"import os\nfor i in range(2000): os.symlink('x', f'{OUT}/{{i}}')"
    assert python(source).reason == "artifact_limit"


def test_name_that_is_not_text_is_skipped(python):
    assert python(f"open(b'{OUT}/\\xff', 'w').close()").artifacts == {}


def test_artifacts_of_a_stopped_run_are_empty(python):
    source = f"import time; open('{OUT}/a', 'w').write('1'); time.sleep(60)"
    assert python(source, timeout_seconds=0.5).artifacts == {}
