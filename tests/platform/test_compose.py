"""What a real deployment hands to which service: the walls between keys, read from compose.yaml and the Dockerfile."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.bus.workers import Worker
from silas_platform.up.environment import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
WORKERS = ["worker", "parser", "upkeep"]
STAYING = ["postgres", "redis", "web", "trusted", *WORKERS, "beat"]


def holders(secret: str) -> set[str]:
    """Services that get `secret` mounted or named in their environment."""
    mounted = {name for name, service in SERVICES.items() if secret in service.get("secrets", [])}
    named = {name for name, service in SERVICES.items() if f"/{secret}" in str(service.get("environment", {}).values())}
    return mounted | named


@pytest.mark.parametrize(
    ("secret", "services"),
    [
        ("signing_key", {"web", "trusted"}),
        ("secrets_key", {"web", "trusted", *WORKERS}),
        ("secret_key", {"web", "trusted", "migrate"}),
        ("worker_secret_key", {*WORKERS}),
        ("database_url", {"web", "trusted", "migrate"}),
        ("database_work_url", {*WORKERS}),
        ("database_owner_url", {"migrate"}),
        ("postgres_password", {"postgres", "roles"}),
        ("database_owner_password", {"roles"}),
        ("database_app_password", {"roles"}),
        ("database_work_password", {"roles"}),
    ],
)
def test_secret_is_held_by_no_other_service(secret: str, services: set[str]) -> None:
    assert holders(secret) == services


def test_no_key_is_written_into_environment() -> None:
    told = {key for service in SERVICES.values() for key in service.get("environment", {})}
    assert not told & {"SECRET_KEY", "SILAS_SIGNING_KEY", "SILAS_SECRETS_KEY", "DATABASE_URL", "DATABASE_OWNER_URL"}


def test_checkpoints_are_written_where_workers_read_them() -> None:
    files = {name: SERVICES[name]["environment"].get("SILAS_CHECKPOINTS") for name in ("web", "trusted", *WORKERS)}
    assert set(files.values()) == {"/var/lib/silas/trust/audit-checkpoints.jsonl"}
    assert "trust:/var/lib/silas/trust" in SERVICES["web"]["volumes"]
    assert "trust:/var/lib/silas/trust" in SERVICES["trusted"]["volumes"]


def test_every_secret_is_a_file_outside_repository() -> None:
    assert all(secret["file"].startswith("./secrets/") for secret in COMPOSE["secrets"].values())
    ignored = subprocess.run(["git", "check-ignore", "secrets/signing_key"], cwd=ROOT, check=False, capture_output=True)
    assert ignored.returncode == 0


def test_every_service_that_stays_has_a_health_check() -> None:
    assert [name for name in STAYING if not SERVICES[name]["healthcheck"]["test"]] == []


@pytest.mark.parametrize("service", ["postgres", "roles", "redis", "beat", "migrate"])
def test_service_cannot_reach_outside(service: str) -> None:
    assert SERVICES[service]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


@pytest.mark.parametrize("service", ["web", "trusted", *WORKERS, "beat", "migrate", "roles"])
def test_service_can_gain_no_privilege(service: str) -> None:
    assert SERVICES[service]["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in SERVICES[service]["security_opt"]


def test_service_with_the_signing_key_starts_no_sandbox() -> None:
    assert SERVICES["trusted"]["security_opt"] == ["no-new-privileges:true"]


def test_roles_are_made_before_migrations_and_migrations_before_every_service() -> None:
    done = {"condition": "service_completed_successfully"}
    assert "restart" in SERVICES["roles"]
    assert SERVICES["migrate"]["depends_on"]["roles"] == done
    for name in ("web", "trusted", *WORKERS, "beat"):
        assert SERVICES[name]["depends_on"]["migrate"] == done


def test_every_kind_of_worker_has_a_service_of_its_own() -> None:
    commands = [" ".join(map(str, service.get("command", []))) for service in SERVICES.values()]
    assert [sum(f"worker -Q {kind} " in command for command in commands) for kind in Worker] == [1] * len(Worker)


def test_no_service_publishes_a_port_but_web_to_this_machine_only() -> None:
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"web"}
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["web"]["ports"])


def test_images_are_pinned_to_a_version() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)
    assert bases
    images = [*bases, *(SERVICES[name]["image"] for name in ("postgres", "redis", "web"))]
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+[-\w.]*$", image)] == []


def test_image_does_not_run_as_root_and_brings_a_sandbox() -> None:
    assert re.findall(r"^USER (\S+)", DOCKERFILE, flags=re.MULTILINE) == ["silas"]
    assert "bubblewrap" in DOCKERFILE


def test_image_installs_only_what_is_pinned_by_hash() -> None:
    installed = re.findall(r"pip install (?:[^\\\n]|\\\n)+", DOCKERFILE)
    assert len(installed) == 2
    assert all("--require-hashes --only-binary=:all:" in each for each in installed)


def test_guardrails_ai_is_in_the_image_beside_the_platforms_packages() -> None:
    folder = re.search(r"SILAS_GUARDRAILS=(\S+)", DOCKERFILE)
    assert folder is not None
    assert f"--target {folder[1]} -r /tmp/requirements/guardrails.txt" in DOCKERFILE
    assert f"RUN python -I -S apps/gates/validator.py {folder[1]}" in DOCKERFILE


def test_image_copies_only_what_exists_and_is_let_through() -> None:
    copied = [
        path for line in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, flags=re.MULTILINE) for path in line.split()
    ]
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert [path for path in copied if not (ROOT / path).exists()] == []
    assert [path for path in copied if path not in let_through and path.split("/")[0] not in let_through] == []


def test_made_secrets_fit_what_compose_asks_for(tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    script = tmp_path / "deploy" / "make-secrets"
    script.write_bytes((ROOT / "deploy" / "make-secrets").read_bytes())
    for _ in range(2):
        subprocess.run(["sh", script], check=True, capture_output=True)
    made = {file.name: file.read_text() for file in (tmp_path / "secrets").iterdir()}
    assert set(made) == set(COMPOSE["secrets"])
    assert len(set(made.values())) == len(made)
    for role in ("app", "owner", "work"):
        address = made["database_url" if role == "app" else f"database_{role}_url"]
        assert f"silas_{role}:{made[f'database_{role}_password']}@" in address
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
