"""With which key is a model asked? The owner's own first, opened where it belongs, and nowhere else."""

from __future__ import annotations

import pytest

from llm.credentials import join_credential, provider_of, split_credential
from llm.keys import ProviderKeys, seal_key

MODEL = "openai:small"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-installation")


def keys(owner: str = "one", **fields: bool) -> ProviderKeys:
    return ProviderKeys(sealed={"openai": seal_key("own", provider="openai", owner="one")}, owner=owner, **fields)


def test_own_key_goes_before_the_installations() -> None:
    assert keys(environment=True).of(MODEL) == "own"


@pytest.mark.parametrize(("allowed", "key"), [(True, "of-the-installation"), (False, None)])
def test_without_an_own_key_the_installations_counts_where_it_is_allowed(allowed: bool, key: str | None) -> None:
    assert ProviderKeys(environment=allowed).of(MODEL) == key


def test_key_that_was_sealed_for_another_opens_nothing() -> None:
    assert keys(owner="other", environment=True).of(MODEL) is None


def test_key_of_another_provider_is_not_taken() -> None:
    assert keys().of("anthropic:small") is None


def test_key_that_is_no_sealed_value_opens_nothing() -> None:
    assert ProviderKeys(sealed={"openai": "not base64!"}, owner="one").of(MODEL) is None


def test_key_stands_in_no_repr() -> None:
    assert "sealed" not in repr(keys())


@pytest.mark.parametrize(
    ("key", "address"),
    [("sk-1", ""), ("sk-1", "https://llm.example.com/v1"), (None, "http://127.0.0.1:11434/v1"), (None, "")],
)
def test_key_and_address_are_one_credential(key: str | None, address: str) -> None:
    credential = join_credential(key or "", address) or None
    assert split_credential(credential) == (key, address)


@pytest.mark.parametrize("model", ["openai:x", "openai-chat:x", "openai-responses:x"])
def test_one_provider_has_one_key_however_it_is_asked(model: str) -> None:
    assert provider_of(model) == "openai"
