"""Folders that are accepted, and those that are not (spec 10.4)."""

import os
import time

import pytest

from apps.skills.loader import load_folder, read_front_matter
from kernel.errors import SilasError
from tests.factories.skills import acting_tool, make_folder, read_tool


def refusal(folder) -> str:
    with pytest.raises(SilasError) as refused:
        load_folder(folder)
    assert refused.value.code == "skill_invalid"
    return " | ".join(refused.value.extra["problems"])


def test_folder_in_order_is_loaded(tmp_path):
    assert [tool.name for tool in load_folder(make_folder(tmp_path)).manifest.tools] == ["look", "act"]


def test_digest_changes_with_any_byte_of_any_file(tmp_path):
    before = load_folder(make_folder(tmp_path)).digest
    assert load_folder(make_folder(tmp_path, files={"checks/done.py": "print('done' )"})).digest != before


def test_digest_changes_when_a_file_is_renamed(tmp_path):
    before = load_folder(make_folder(tmp_path, files={"references/a.md": "x"})).digest
    os.rename(tmp_path / "test-desk/references/a.md", tmp_path / "test-desk/references/b.md")
    assert load_folder(tmp_path / "test-desk").digest != before


def test_schema_of_arguments_is_closed(tmp_path):
    tool = load_folder(make_folder(tmp_path)).manifest.tools[1]
    assert tool.args["additionalProperties"] is False


def test_link_in_the_folder_is_refused(tmp_path):
    folder = make_folder(tmp_path)
    (folder / "scripts/extra.py").symlink_to("/etc/passwd")
    assert "not a plain file" in refusal(folder)


def test_linked_directory_is_refused(tmp_path):
    folder = make_folder(tmp_path)
    (folder / "assets").symlink_to("/etc")
    assert "link" in refusal(folder)


def test_folder_of_another_name_is_refused(tmp_path):
    assert "the folder is called" in refusal(make_folder(tmp_path, name="other-desk"))


def test_folder_without_manifest_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no SKILL.md" in refusal(tmp_path / "empty")


HOSTILE_FRONTS = {
    "lists in a row": "a:\n  " + "- " * 49_000,
    "keys in a row": "a:\n  " + "? " * 49_000,
    "brackets": "a: " + "[" * 90_000,
    "braces": "a: " + "{a: " * 20_000,
    "brackets beside a star": "a: '*'\nb: " + "[" * 90_000,
    "twenty-one lists": "a: " + "[" * 21 + "]" * 21,
    "a number beyond any": "a: 1" + ":1" * 45_000 + ".5",
    "an alias": "a: &a [1]\nb: [*a, *a]",
    "an alias behind three dashes": "a: 'x---y'\nb: &b [1]\nc: [*b, *b]",
}


@pytest.mark.parametrize("what", HOSTILE_FRONTS)
def test_front_matter_that_is_nested_deeply_or_refers_to_itself_is_refused_at_once(what):
    raw = f"---\nname: x\n{HOSTILE_FRONTS[what]}\n---\n\nDo it.".encode()
    began = time.process_time()
    with pytest.raises(SilasError) as refused:
        read_front_matter(raw)
    assert refused.value.code == "skill_invalid"
    assert time.process_time() - began < 1


@pytest.mark.parametrize("front", ["name: [", "name: !!python/object:os.system x", "- a\n- b"])
def test_manifest_that_is_no_plain_yaml_is_refused(tmp_path, front):
    folder = make_folder(tmp_path, files={"SKILL.md": f"---\n{front}\n---\nbody"})
    assert refusal(folder)


@pytest.mark.parametrize("description", ["short", "x" * 1025])
def test_description_out_of_bounds_is_refused(tmp_path, description):
    assert "description" in refusal(make_folder(tmp_path, description=description))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import os; os.system('ls')", "os.system"),
        ("import subprocess; subprocess.run('ls', shell=True)", "shell=True"),
        ("import subprocess; subprocess.run('ls', shell=flag)", "shell=True"),
        ("eval(input())", "eval"),
        ("def (", "SyntaxError"),
        ("API_KEY = 'abcdefgh12345678'", "credential"),
        ("key = '-----BEGIN PRIVATE KEY-----'", "credential"),
    ],
)
def test_script_with_a_forbidden_pattern_is_refused(tmp_path, source, problem):
    assert problem in refusal(make_folder(tmp_path, files={"scripts/look.py": source}))


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (read_tool(script="scripts/gone.py"), "scripts/gone.py is missing"),
        (read_tool(script="../../etc/passwd"), "script"),
        (read_tool(ask={"order": "Which?"}), "does not take"),
        (read_tool(writes=["orders"]), "only an acting tool writes"),
        (read_tool(args={"type": "string"}), "describes an object"),
        (read_tool(args={"type": "object", "properties": {"a": {"type": "nonsense"}}}), "no JSON schema"),
        (read_tool(risk="tiny"), "risk"),
        (read_tool(unknown=1), "unknown"),
        (acting_tool(verify=[]), "declares intent"),
        (acting_tool(intent=""), "declares intent"),
        (acting_tool(consequence=None), "declares intent"),
        (
            acting_tool(
                verify=[{"name": "x", "run": "python3 /sandbox/skill/checks/gone.py", "expect": {"equals": "x"}}]
            ),
            "checks/gone.py is missing",
        ),
        (acting_tool(verify=[{"name": "x", "run": "true", "expect": {}}]), "exactly one"),
        (acting_tool(facts=[{"label": "x"}]), "names a stored value"),
    ],
)
def test_tool_that_is_not_accountable_is_refused(tmp_path, tool, problem):
    assert problem in refusal(make_folder(tmp_path, tools=[tool]))


def test_two_tools_of_one_name_are_refused(tmp_path):
    assert "one name" in refusal(make_folder(tmp_path, tools=[read_tool(), read_tool()]))


def test_folder_too_large_is_refused(tmp_path):
    assert "too large" in refusal(make_folder(tmp_path, files={"assets/big.txt": "x" * 1_000_001}))
