"""Which model does a name give, and whose key does it carry?"""

from __future__ import annotations

import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.openrouter import OpenRouterModel

from llm.failures import ProviderFailed
from llm.models import GROUNDED, environment_key, needs_key, open_model, resolve_model
from llm.offline.model import grounded_model

LOCAL = "http://127.0.0.1:9/v1"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "OLLAMA_API_KEY")


@pytest.fixture(autouse=True)
def platform_keys(local_provider: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider key that the process could leak."""
    for name in KEYS:
        monkeypatch.setenv(name, "sk-of-the-platform")
    monkeypatch.setenv("OLLAMA_BASE_URL", LOCAL)


def test_builtin_name_gives_the_builtin_model() -> None:
    assert resolve_model(GROUNDED) is grounded_model()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai:gpt-4o-mini", OpenAIResponsesModel),
        ("openrouter:meta-llama/llama-3.1-8b-instruct:free", OpenRouterModel),
        ("anthropic:claude-sonnet-4-5", AnthropicModel),
        ("ollama:llama3.2", OllamaModel),
    ],
)
async def test_provider_name_gives_its_model_with_the_tenants_key(name: str, kind: type) -> None:
    async with open_model(name, key="sk-tenant") as model:
        assert isinstance(model, kind)
        assert model.provider is not None
        assert model.provider.client.api_key == "sk-tenant"


async def test_base_url_gives_a_chat_model_at_that_address() -> None:
    async with open_model("openai:my-model", base_url=LOCAL) as model:
        assert isinstance(model, OpenAIChatModel)
        assert model.base_url.rstrip("/") == LOCAL


@pytest.mark.parametrize(("name", "base_url"), [("openai:my-model", LOCAL), ("ollama:llama3.2", None)])
async def test_keyless_server_never_gets_a_key_of_the_platform(name: str, base_url: str | None) -> None:
    async with open_model(name, base_url=base_url) as model:
        assert model.provider is not None
        assert "platform" not in model.provider.client.api_key


@pytest.mark.parametrize("name", ["openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5"])
def test_provider_without_a_key_is_refused_though_the_process_has_one(name: str) -> None:
    with pytest.raises(ProviderFailed) as refused:
        resolve_model(name)
    assert refused.value.reason == "no_provider_key"


@pytest.mark.parametrize("name", ["gpt-4o", "", ":", "openai:", "nowhere:model", "test", "builtin:other"])
def test_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ProviderFailed) as refused:
        resolve_model(name, key="k")
    assert refused.value.reason == "unknown_model"


@pytest.mark.parametrize("base_url", ["nonsense", "http://[::1", "ftp://x/", "http://127.0.0.1:99999/v1", "http://"])
def test_base_url_that_is_no_address_is_refused(base_url: str) -> None:
    with pytest.raises(ProviderFailed) as refused:
        resolve_model("openai:my-model", base_url=base_url)
    assert refused.value.reason == "bad_base_url"


@pytest.mark.parametrize("key", ["", "sk\nx: y", "sk-schl\u00fcssel"])
def test_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(ProviderFailed) as refused:
        resolve_model("openai:my-model", key=key)
    assert refused.value.reason == "bad_provider_key"


@pytest.mark.parametrize(
    ("name", "key"),
    [("openai:gpt-4o", "sk-of-the-platform"), ("openai-chat:gpt-4o", "sk-of-the-platform"), ("groq:llama", None)],
)
def test_environment_key_is_given_to_who_may_use_it(name: str, key: str | None) -> None:
    assert environment_key(name, allowed=True) == key


@pytest.mark.parametrize("name", ["openai:gpt-4o", "openai-chat:gpt-4o", "anthropic:claude"])
def test_environment_key_is_nobodys_who_was_not_allowed_it(name: str) -> None:
    assert environment_key(name) is None
    assert environment_key(name, allowed=False) is None


@pytest.mark.parametrize(
    ("name", "needed"), [("openai:gpt-4o", True), ("ollama:llama3", False), ("builtin:grounded", False)]
)
def test_model_needs_a_key_unless_it_runs_here(name: str, needed: bool) -> None:
    assert needs_key(name) is needed


async def test_http_client_is_closed_with_the_run() -> None:
    async with open_model("openai:gpt-4o-mini", key="k") as model:
        assert model.provider is not None
        client = model.provider.client
    assert client.is_closed()
