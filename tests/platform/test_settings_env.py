"""What the settings accept from the environment: values or files, never both, never garbage."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from silas_platform.checks import refuse_wrong_keys
from silas_platform.settings import env


def test_secret_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SOME_KEY") == "from-a-file"


@pytest.mark.parametrize(
    ("given", "read", "code"),
    [
        ({"SOME": "value", "SOME_FILE": os.devnull}, env.text, "E_CFG_SECRET_TWICE"),
        ({"SOME_FILE": "/"}, env.text, "E_CFG_SECRET_FILE"),
        ({"SOME": "maybe"}, partial(env.flag, default=False), "E_CFG_FLAG"),
        ({"SOME": "-5"}, lambda name: env.number(name, 1), "E_CFG_NUMBER"),
        *(({"SOME": key}, env.public_keys, "E_CFG_ROOT_KEYS") for key in ("a" * 63, "g" * 64, f"{'a' * 64} short")),
    ],
)
def test_value_that_makes_no_sense_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], read: Any, code: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=code):
        read("SOME")


@pytest.mark.parametrize("form", ["SILAS_SIGNING_KEY", "SILAS_SIGNING_KEY_FILE"])
def test_worker_with_signing_key_refuses_to_start(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv(form, "/somewhere")
    with pytest.raises(ImproperlyConfigured, match="E_CFG_SIGNING_KEY"):
        refuse_wrong_keys(["work"])


def test_pinned_keys_stand_on_lines_or_between_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILAS_ROOT_KEYS", f"{'a' * 64},{'b' * 64}\n{'c' * 64}\n")
    assert env.public_keys("SILAS_ROOT_KEYS") == ("a" * 64, "b" * 64, "c" * 64)


def test_worker_without_a_pinned_key_is_refused(settings: Any) -> None:
    settings.SILAS_SIGNING_KEY, settings.SILAS_ROOT_KEYS = "", ()
    with pytest.raises(ImproperlyConfigured, match="E_CFG_ROOT_KEYS"):
        refuse_wrong_keys(["work"])


def test_settings_of_a_pattern_are_read_by_the_part_that_varies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "address"
    secret.write_text("https://relay.example\n")
    monkeypatch.setenv("SILAS_TELEGRAM_API", " https://telegram.example ")
    monkeypatch.setenv("SILAS_RELAY_API_FILE", str(secret))
    monkeypatch.setenv("SILAS_EMPTY_API", "")
    monkeypatch.setenv("SILAS_TELEGRAM_API_KEY", "no")
    found = env.by_name(r"SILAS_([A-Z]+)_API")
    assert found == {"telegram": "https://telegram.example", "relay": "https://relay.example"}
