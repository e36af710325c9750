"""The commands of docs/operations.md exist with the options that it gives them, and a test stands behind each step.

Steps that need Docker or a Kubernetes cluster are checked as far as a machine without them can: their services, secrets
and values exist. The tests of the steps, which the guide names, run the processes themselves.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from celery.bin.celery import celery
from daphne.cli import CommandLineInterface
from django.core.management import get_commands, load_command_class

from apps.bus.workers import Worker
from silas_platform.up.environment import ROOT
from tests.programs import PROGRAMS, do_without

GUIDE = (ROOT / "docs/operations.md").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
VALUES = yaml.safe_load((ROOT / "deploy/helm/silas/values.yaml").read_text())
HAPROXY = "/usr/sbin/haproxy"
# Steps of these guides are numbered.
GUIDES = (
    "Set it up on one machine",
    "Several machines",
    "Kubernetes",
    "Kubernetes: backup, restore and upgrade",
    "Upgrades",
    "Backups",
    "Move a company",
)
_CODE = re.compile(r"```sh\n(.*?)```|`([^`\n]+)`", re.DOTALL)
_NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)
_ROW = re.compile(r"^\| ([^|]+) \| ([\d, to]+) \| ([^|]+) \|$", re.MULTILINE)


@cache
def lines() -> tuple[str, ...]:
    """Every line of code in the guide, without comments."""
    found = [block or span for block, span in _CODE.findall(GUIDE)]
    return tuple(line.split("  #")[0].strip() for code in found for line in code.splitlines() if line.strip())


def commands(program: str) -> list[list[str]]:
    """The words behind this program wherever the guide calls it; where the rest is no command, its name alone."""
    behind = [line.split(f"{program} ", 1)[1] for line in lines() if f"{program} " in line]
    return [shlex.split(rest) for rest in behind]


def section(title: str) -> str:
    return GUIDE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def numbers(words: str) -> set[int]:
    found: set[int] = set()
    for part in words.split(","):
        first, _, last = part.strip().partition(" to ")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("words", commands("manage.py"), ids=" ".join)
def test_management_command_exists_with_its_options(words: list[str]) -> None:
    name, *given = words
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    known = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and given:
            known |= set(action.choices[given[0]]._option_string_actions)
    assert [word for word in given if word.startswith("--") and word.partition("=")[0] not in known] == []


@pytest.mark.parametrize("words", commands("celery"), ids=" ".join)
def test_celery_knows_its_command(words: list[str]) -> None:
    assert words[:2] in (["-A", "silas_platform"], ["-A", "silas_platform.beat"])
    name, *given = words[2:]
    parser = celery.commands[name].make_parser(celery.commands[name].make_context(name, [], resilient_parsing=True))
    values, rest, _ = parser.parse_args(list(given))
    assert rest == []
    assert set(values.get("queues", "").split(",")) - {"", *Worker} == set()


def test_daphne_knows_its_options() -> None:
    ((*given,),) = commands("python -m daphne")
    assert CommandLineInterface().parser.parse_args(given).application == "silas_platform.asgi:application"


def test_services_of_compose_exist() -> None:
    known = COMPOSE["services"]
    for words in commands("docker compose"):
        verb, *rest = words
        if verb in ("exec", "stop"):
            assert rest[0] in known
        if verb == "run":
            assert any(word in known for word in rest), words


def test_files_of_the_guide_exist() -> None:
    ours = re.compile(r"(?:deploy|tests|silas_platform|tools)/[\w./-]+")
    files = {path for line in lines() if "kubectl " not in line for path in ours.findall(line)}
    assert {path for path in files if not (ROOT / path).exists()} == set()
    assert "deploy/haproxy.cfg" in files


def test_secrets_and_values_of_the_chart_exist() -> None:
    secrets = {name for line in lines() for name in re.findall(r"--from-file=secrets/(\w+)", line)}
    assert secrets - set(COMPOSE["secrets"]) == set()
    values = {name for line in lines() for name in re.findall(r"--set ([\w.]+)=", line)}
    assert {"maintenance.enabled", "maintenance.stop", "maintenance.tag", "image.tag"} <= values
    for name in values:
        place = VALUES
        for part in name.split("."):
            assert part in place, name
            place = place[part]
    assert "host" in values


def test_command_of_haproxy_is_accepted(tmp_path: Path) -> None:
    """As written, with a certificate of its own."""
    if not os.access(HAPROXY, os.X_OK):
        do_without("needs Debian's haproxy", PROGRAMS)
    (line,) = [line for line in lines() if line.startswith("SILAS_BIND=")]
    words = shlex.split(line)
    given = dict(word.split("=", 1) for word in words if re.match(r"SILAS_\w+=", word))
    certificate = tmp_path / "site.pem"
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(certificate)]
    made = ["openssl", "req", "-x509", *key, "-out", str(tmp_path / "cert"), "-subj", "/CN=chat.example.com"]
    subprocess.run(made, check=True, capture_output=True)
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "cert").read_bytes())
    given["SILAS_BIND"] = given["SILAS_BIND"].replace("/etc/haproxy/certs/", f"{tmp_path}/site.pem")
    given |= {name: value.replace("web-", "127.0.0.") for name, value in given.items() if name.startswith("SILAS_WEB")}
    checked = subprocess.run(
        [HAPROXY, "-c", *words[words.index("haproxy") + 1 :]],
        env={**os.environ, **given},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("guide", GUIDES)
def test_each_step_names_a_test_that_exists(guide: str) -> None:
    rows = [(steps, tests) for title, steps, tests in _ROW.findall(section("Tests of the guides")) if title == guide]
    steps = {int(number) for number in _NUMBERED.findall(section(guide))}
    assert set().union(*(numbers(steps) for steps, _ in rows)) == steps
    for _, tests in rows:
        paths = re.findall(r"`(tests/[\w./]+)`", tests)
        assert paths
        assert [path for path in paths if not (ROOT / path).is_file()] == []
