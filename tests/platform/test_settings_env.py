"""What the settings accept from the environment: values or files, never both, never garbage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from silas_platform.checks import refuse_signing_key, refuse_without_root
from silas_platform.settings import env


def test_secret_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SOME_KEY") == "from-a-file"


def test_secret_given_twice_stops_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "value")
    monkeypatch.setenv("SOME_KEY_FILE", os.devnull)
    with pytest.raises(ImproperlyConfigured, match="E_CFG_SECRET_TWICE"):
        env.text("SOME_KEY")


def test_secret_file_that_cannot_be_read_stops_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_KEY_FILE", str(tmp_path))
    with pytest.raises(ImproperlyConfigured, match="E_CFG_SECRET_FILE"):
        env.text("SOME_KEY")


def test_flag_that_is_neither_stops_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_FLAG", "maybe")
    with pytest.raises(ImproperlyConfigured, match="E_CFG_FLAG"):
        env.flag("SOME_FLAG", default=False)


def test_number_that_is_none_stops_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_NUMBER", "-5")
    with pytest.raises(ImproperlyConfigured, match="E_CFG_NUMBER"):
        env.number("SOME_NUMBER", 1)


@pytest.mark.parametrize("form", ["SILAS_SIGNING_KEY", "SILAS_SIGNING_KEY_FILE"])
def test_worker_with_signing_key_refuses_to_start(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv(form, "/somewhere")
    with pytest.raises(ImproperlyConfigured, match="E_CFG_SIGNING_KEY"):
        refuse_signing_key()


@pytest.mark.parametrize("given", ["a" * 63, "g" * 64, f"{'a' * 64} short"])
def test_pinned_key_that_is_none_stops_the_start(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("SILAS_ROOT_KEYS", given)
    with pytest.raises(ImproperlyConfigured, match="E_CFG_ROOT_KEYS"):
        env.public_keys("SILAS_ROOT_KEYS")


def test_pinned_keys_stand_on_lines_or_between_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILAS_ROOT_KEYS", f"{'a' * 64},{'b' * 64}\n{'c' * 64}\n")
    assert env.public_keys("SILAS_ROOT_KEYS") == ("a" * 64, "b" * 64, "c" * 64)


def test_worker_without_a_pinned_key_is_refused(settings: Any) -> None:
    settings.SILAS_SIGNING_KEY, settings.SILAS_ROOT_KEYS = "", ()
    with pytest.raises(ImproperlyConfigured, match="E_CFG_ROOT_KEYS"):
        refuse_without_root()
