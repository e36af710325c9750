"""What each process is told, which keys are made, and when an open HOST is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel.trust import root_of
from silas_platform.up.environment import (
    KEYS,
    StartRefused,
    certify_once,
    for_program,
    is_loopback,
    open_host_faults,
    with_addresses_read,
    with_embedded_addresses,
    with_keys,
)

OPEN = {"HOST": "0.0.0.0", "ALLOWED_HOSTS": "chat.example.com", **dict.fromkeys(KEYS, "given")}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"SILAS_VAR": str(tmp_path)}


@pytest.mark.parametrize("missing", [*KEYS, "ALLOWED_HOSTS"])
def test_open_host_without_one_condition_is_refused_by_name(missing: str) -> None:
    assert open_host_faults(OPEN) == []
    faults = open_host_faults({**OPEN, missing: " "})
    assert len(faults) == 1
    assert missing in faults[0]


def test_open_host_does_not_accept_keys_that_we_made_ourselves(env: dict[str, str]) -> None:
    assert len(open_host_faults(with_keys({**env, "HOST": "0.0.0.0", "ALLOWED_HOSTS": "x"}))) == 3


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    assert open_host_faults({"HOST": host}) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.com", "localhost.example.com"])
def test_everything_else_is_open(host: str) -> None:
    assert not is_loopback(host)


def test_made_keys_are_private_long_different_and_kept_for_the_next_run(env: dict[str, str]) -> None:
    files = [Path(with_keys(env)[f"{name}_FILE"]) for name in KEYS]
    keys = [file.read_text() for file in files]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert len(set(keys)) == 3
    assert min(map(len, keys)) >= 43
    assert [Path(with_keys(env)[f"{name}_FILE"]).read_text() for name in KEYS] == keys


@pytest.mark.parametrize("name", ["SILAS_SIGNING_KEY", "SILAS_ROOT_KEYS"])
def test_key_that_is_given_is_not_made(env: dict[str, str], tmp_path: Path, name: str) -> None:
    assert f"{name}_FILE" not in with_keys({**env, name: "0" * 64})
    assert not (tmp_path / "keys" / name.lower()).exists()


@pytest.mark.parametrize("form", ["", "_FILE"])
def test_program_is_told_its_own_keys_and_database_only(form: str) -> None:
    keys = {f"{name}{form}": f"{name} of web" for name in KEYS}
    given = {**keys, "DATABASE_URL": "of-web", "DATABASE_WORK_URL": "of-workers", "DATABASE_OWNER_URL": "of-owner"}
    given["REDIS_URL"] = "redis://cache"
    told = for_program(given, "worker")
    assert for_program(given, "web") == {**keys, "DATABASE_URL": "of-web", "REDIS_URL": "redis://cache"}
    assert for_program(given, "trusted") == for_program(given, "web")
    assert told.keys() == {"SECRET_KEY", f"SILAS_SECRETS_KEY{form}", "DATABASE_URL", "REDIS_URL"}
    assert told["DATABASE_URL"] == "of-workers"
    assert told["SECRET_KEY"] != "SECRET_KEY of web"
    assert len(told["SECRET_KEY"]) >= 43


def test_worker_without_an_address_of_its_own_is_not_told_webs() -> None:
    assert for_program({"DATABASE_URL": "of-web"}, "worker")["DATABASE_URL"] == ""


def test_address_given_is_left_alone(env: dict[str, str]) -> None:
    told = with_embedded_addresses({**env, "DATABASE_URL": "postgresql://db/silas", "REDIS_URL": "redis://cache"})
    assert told["DATABASE_URL"] == "postgresql://db/silas"
    assert told["REDIS_URL"] == "redis://cache"


def test_embedded_address_serves_as_application_and_migrates_as_owner(env: dict[str, str]) -> None:
    told = with_embedded_addresses(env)
    assert "//silas_app@" in told["DATABASE_URL"]
    assert "//silas_owner@" in told["DATABASE_OWNER_URL"]
    assert "//silas_work@" in told["DATABASE_WORK_URL"]


def test_address_file_is_read(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://cache\n")
    assert with_addresses_read({**env, "REDIS_URL_FILE": str(tmp_path / "url")})["REDIS_URL"] == "redis://cache"


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"REDIS_URL_FILE": "/nowhere/url"}, "REDIS_URL_FILE cannot be read"),
        ({"REDIS_URL_FILE": os.devnull, "REDIS_URL": "redis://cache"}, "not both"),
    ],
)
def test_address_file_that_is_not_there_or_stands_beside_an_address_is_refused(
    given: dict[str, str], refusal: str
) -> None:
    with pytest.raises(StartRefused, match=refusal):
        with_addresses_read(given)


def _pinned(told: dict[str, str]) -> list[str]:
    return Path(told["SILAS_ROOT_KEYS_FILE"]).read_text().split()


def test_installation_keys_public_half_is_pinned_for_every_program(env: dict[str, str]) -> None:
    told = with_keys(env)
    root = root_of(Path(told["SILAS_SIGNING_KEY_FILE"]).read_text())
    for program in ("web", "trusted", "worker"):
        assert _pinned(for_program(told, program)) == [root]


def test_another_signing_key_is_pinned_beside_the_old_one(env: dict[str, str]) -> None:
    with_keys({**env, "SILAS_SIGNING_KEY": "old"})
    assert _pinned(with_keys({**env, "SILAS_SIGNING_KEY": "new"})) == [root_of("old"), root_of("new")]


def test_first_pin_asks_for_one_certifying_and_no_later_one_does(env: dict[str, str]) -> None:
    with_keys(env)
    assert certify_once(env).exists()
    certify_once(env).unlink()
    with_keys({**env, "SILAS_SIGNING_KEY": "new"})
    assert not certify_once(env).exists()
