"""An agent that wants its work to count as done: it has a sandbox before the checks, and leaves what it likes."""

from __future__ import annotations

import shlex
import socket
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from apps.gates.rules import meets
from apps.gates.schemas import Expectation
from apps.guard.schemas import CallContext
from apps.skills.models import SkillVersion
from apps.skills.runs import run_skill
from apps.work.schemas import CheckResult, VerificationCheck
from apps.work.verification import run_check
from kernel.tenancy import tenant_scope
from sandbox import Choice, SandboxResult, SandboxSpec, configure, run
from tests.factories.work import make_desk

HONEST = "import os\nprint('done' if os.path.exists('/sandbox/artifacts/letter.txt') else 'not done')\n"
LIE = "print('done')\n"
CHECKS = ["python3 /sandbox/skill/check.py", "python3 -I -S /sandbox/skill/check.py", "sh /sandbox/skill/check.sh"]


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "check.py").write_text(HONEST)
    (folder / "check.sh").write_text("test -e /sandbox/artifacts/letter.txt && echo done || echo not done\n")
    for path in (tmp_path, folder):
        path.chmod(0o755)
    return folder


def agent(source: str, skill: Path) -> SandboxResult:
    """What the agent's own run leaves, with its skill visible to it."""
    return run(SandboxSpec(["python3", "-I", "-S", "-c", source], read_only={"skill": skill}, timeout_seconds=10))


def verdict(command: str, *, left: SandboxResult, skill: Path, **expect: Any) -> CheckResult:
    wanted = VerificationCheck(name="c", run=command, expect=expect or {"equals": "done"}, timeout=10)
    return run_check(wanted, mounts={"artifacts": left.artifacts, "skill": skill})


TRICKS = {
    "writes the check": f"open('/sandbox/skill/check.py', 'w').write({LIE!r})",
    "replaces the check": "import os; os.rename('/sandbox/skill/check.py', '/sandbox/skill/old.py')",
    "mounts over the check": "import ctypes; ctypes.CDLL(None).mount(b'x', b'/sandbox/skill', b'tmpfs', 0, None)",
    "leaves a sitecustomize": "open('/sandbox/out/sitecustomize.py', 'w').write('print(\\'done\\'); raise SystemExit')",
    "leaves one in its work": "open('sitecustomize.py', 'w').write('print(\\'done\\')')",
    "leaves one in the skill": "open('/sandbox/skill/sitecustomize.py', 'w').write('print(\\'done\\')')",
    "leaves a module": "open('/sandbox/out/os.py', 'w').write('print(\\'done\\')')",
    "leaves its own python3": (
        "import os\nfor place in ('/sandbox/out', '/sandbox/work', '/usr/local/bin'):\n"
        "  for name in ('python3', 'sh'):\n"
        "    try:\n"
        "      open(f'{place}/{name}', 'w').write('#!/bin/sh\\necho done')\n"
        "      os.chmod(f'{place}/{name}', 0o755)\n"
        "    except OSError: pass"
    ),
    "names artifacts like the checks": (
        "import os\nos.makedirs('/sandbox/out/skill')\n"
        "for name in ('check.py', 'check.sh', 'skill/check.py'):\n"
        f"  open('/sandbox/out/' + name, 'w').write({LIE!r})"
    ),
    "sets variables": "import os; os.environ.update(PATH='/sandbox/work', PYTHONPATH='/sandbox/out')",
    "leaves somebody behind": (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(1)\n"
        f"  open('/sandbox/skill/check.py', 'w').write({LIE!r})"
    ),
    "leaves a link": "import os; os.symlink('/sandbox/skill/check.py', '/sandbox/out/letter.txt')",
    "leaves an absolute name": "open('/sandbox/out/..letter.txt', 'w').close()",
}


@pytest.mark.parametrize("command", CHECKS)
@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_agent_that_did_nothing_does_not_pass(trick: str, command: str, skill: Path) -> None:
    assert not verdict(command, left=agent(trick, skill), skill=skill).passed


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_check_is_byte_for_byte_what_it_was(trick: str, skill: Path) -> None:
    agent(trick, skill)
    assert (skill / "check.py").read_text() == HONEST
    assert len(list(skill.iterdir())) == 2


@pytest.mark.parametrize("command", CHECKS)
def test_agent_that_did_it_passes(command: str, skill: Path) -> None:
    left = agent("open('/sandbox/out/letter.txt', 'w').close()", skill)
    assert verdict(command, left=left, skill=skill).passed


def test_tool_does_not_see_the_checks_of_its_work(tenant: Any, tmp_path: Path) -> None:
    source = "import json, os; print(json.dumps({'say': str(os.listdir('/sandbox/skill/checks'))}))"
    desk = make_desk(tenant, tmp_path, script=source)
    with tenant_scope(tenant):
        version = SkillVersion.objects.get()
    context = {"skills": (f"{version.name}@{version.digest[:16]}",), "customer": desk.customer}
    call = CallContext(tenant.pk, uuid4(), uuid4(), "act", {"order": "H-1", "note": 1}, "effect", context)
    assert run_skill(call).value["say"] == "[]"


def test_check_cannot_change_what_the_next_one_sees(skill: Path) -> None:
    left = agent("pass", skill)
    verdict("touch /sandbox/artifacts/letter.txt", left=left, skill=skill)
    assert not verdict(CHECKS[0], left=left, skill=skill).passed


def test_check_leaves_nothing_for_the_next_one(skill: Path) -> None:
    left = agent("pass", skill)
    verdict("touch /sandbox/work/x /sandbox/out/x /sandbox/tmp/x", left=left, skill=skill)
    assert (
        verdict("find /sandbox/work /sandbox/out /sandbox/tmp -type f", left=left, skill=skill, exit_code=0).output
        == ""
    )


def test_check_sees_neither_host_nor_environment(skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILAS_SECRETS_KEY", "very-secret")
    look = 'import os; print(*sorted(os.environ), *sorted(os.listdir("/sandbox")), os.path.exists("/etc/passwd"))'
    result = verdict(f"python3 -c '{look}'", left=agent("pass", skill), skill=skill, exit_code=0)
    assert result.output == "HOME LANG PATH TMPDIR artifacts out skill tmp work False\n"


@pytest.mark.parametrize(
    "path",
    ["../skill/check.py", "artifacts/../skill/check.py", "/etc/hostname", "/sandbox/../etc/hostname", "//etc/hostname"]
    + ["/sandbox/skill/check.py", "skill/check.py", "/proc/self/environ", "artifacts", "artifacts/", "", ".", "out"]
    + ["artifacts/letter.txt/x", "work/letter.txt", "/sandbox/artifacts/letter.txt\0", "~/letter.txt"],
)
def test_file_exists_probes_nothing_else(path: str, skill: Path) -> None:
    left = agent("open('/sandbox/out/letter.txt', 'w').close()", skill)
    assert not verdict("true", left=left, skill=skill, file_exists=path).passed


def test_file_exists_does_not_follow_a_link_that_the_check_makes(skill: Path) -> None:
    command = "ln -s /usr/bin/env /sandbox/out/report"
    assert not verdict(command, left=agent("pass", skill), skill=skill, file_exists="out/report").passed


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a\0b", "", "./a"])
def test_artifact_with_a_name_that_leaves_its_place_fails_the_check(name: str) -> None:
    wanted = VerificationCheck(name="c", run="true", expect={"exit_code": 0})
    assert not run_check(wanted, mounts={"artifacts": {name: b""}}).passed


def test_check_that_prints_without_end_fails_in_time(skill: Path) -> None:
    result = verdict("yes done", left=agent("pass", skill), skill=skill, contains="done")
    assert result.passed is False
    assert result.reason == "stopped: output_limit"


def test_network_that_nobody_allowed_fails_closed() -> None:
    wanted = VerificationCheck(name="c", run="true", expect={"exit_code": 0}, network=True)
    result = run_check(wanted, mounts={})
    assert result.passed is False
    assert "network" in result.reason


def test_check_that_asks_for_the_network_reaches_listed_places_alone(settings: Any) -> None:
    """Another port of the listed machine is blocked."""
    with socket.create_server(("127.0.0.1", 0)) as listed, socket.create_server(("127.0.0.1", 0)) as other:
        places = [f"127.0.0.1:{each.getsockname()[1]}" for each in (listed, other)]
        settings.CHECK_PLACES = places[:1]
        configure(Choice(egress_private=tuple(places)))
        said = [run_check(_knocks(place, network=True), mounts={}).output.strip() for place in places]
        configure(Choice())
    assert said == ["200", "403"]


def _knocks(place: str, *, network: bool) -> VerificationCheck:
    """A script that prints the proxy's answer to a tunnel."""
    source = (
        "import socket; line = socket.create_connection(('127.0.0.1', 3128), 5);"
        f" line.sendall(b'CONNECT {place} HTTP/1.1\\r\\n\\r\\n'); print(line.recv(99).split()[1].decode())"
    )
    run = shlex.join(["python3", "-I", "-S", "-c", source])
    return VerificationCheck(name="c", run=run, expect={"not_empty": True}, network=network)


@pytest.mark.parametrize("expect", [{}, {"exit_code": 0, "equals": "x"}, {"not_empty": False}, {"unknown": 1}])
def test_expectation_that_sets_none_or_several_is_refused(expect: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Expectation(**expect)


@pytest.mark.parametrize(
    ("output", "expect", "met"),
    [
        ("done\n", {"equals": "done"}, True),
        ("done\n\n", {"equals": "done"}, False),
        (" done\n", {"equals": "done"}, False),
        ("done", {"equals": "done\n"}, False),
        ("a\ndone\nb\n", {"regex": "^done$"}, False),
        ("a\ndone\nb\n", {"regex": "(?m)^done$"}, True),
        ("\n", {"not_empty": True}, False),
        ("nan\n", {"output_lt": 1}, False),
        ("inf\n", {"output_gt": 1}, False),
        ("1e3\n", {"output_gt": 999}, True),
        ("3600", {"output_lt": 3600}, False),
        ("1 2", {"output_lt": 3}, False),
        ("", {"output_lt": 3}, False),
        ("", {"exit_code": 1}, False),
    ],
)
def test_expectation_looks_at_exactly_what_was_printed(output: str, expect: dict[str, Any], met: bool) -> None:
    assert meets(Expectation(**expect), output=output, exit_code=0) is met


@pytest.mark.parametrize("expect", [{"exit_code": 0}, {"not_empty": True}, {"file_exists": "out/x"}])
def test_command_without_an_end_of_its_own_meets_nothing(expect: dict[str, Any]) -> None:
    assert not meets(Expectation(**expect), output="x", exit_code=None, file_exists=True)
