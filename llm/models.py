"""Resolve a model name: `builtin:grounded`, or any pydantic-ai model string, with the tenant's key and address.

A key is used as given or not at all: provider keys are never read from the environment implicitly, and none is kept
after the run. Raises `ProviderFailed` for models that cannot be used; `RuntimeError` when model requests are switched
off (tests).
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2

from kernel import tracing
from kernel.http.allowed import is_allowed_private
from kernel.http.client import open_client
from kernel.tracing import ActiveSpan, SpanName
from llm.credentials import COMPATIBLE, provider_of, speaks_responses, split_credential, split_model
from llm.failures import ProviderFailed
from llm.loading import load

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

__all__ = [
    "GROUNDED",
    "environment_key",
    "is_builtin",
    "is_known",
    "model_span",
    "needs_key",
    "open_embedding_model",
    "open_model",
    "resolve_model",
]

GROUNDED = "builtin:grounded"
KEYLESS = {"ollama"}
_SHARE_HTTP_CLIENT = {"openai", "openai-chat", "openai-responses", "openrouter", "ollama", "anthropic"}
_STEP_SECONDS = 600.0
_MOST_BYTES = 50_000_000
_TIMEOUT = httpx2.Timeout(_STEP_SECONDS, connect=5.0)  # outer bound only; a run sets its own (`runs.Patience`)


def is_builtin(name: str) -> bool:
    return name == GROUNDED


def is_known(name: str) -> bool:
    """Whether `name` can mean a model here: the built-in one, or `provider:model` of an installed provider."""
    provider, model = split_model(name)
    if is_builtin(name) or not provider or not model:
        return is_builtin(name)
    if provider_of(name) == COMPATIBLE:
        return True
    load()
    from pydantic_ai.providers import Provider, infer_provider_class

    try:
        return issubclass(infer_provider_class(provider), Provider)
    except (ImportError, ValueError):
        return False


def model_span(name: str) -> AbstractContextManager[ActiveSpan]:
    """The span of one request to this model, with its repair."""
    provider, model = split_model(name)
    return tracing.span(SpanName.MODEL, label=model, provider=provider, model=model)


def needs_key(name: str) -> bool:
    """Whether this model can only be used with a provider's key."""
    return not is_builtin(name) and split_model(name)[0] not in KEYLESS


def environment_key(name: str, *, allowed: bool = False) -> str | None:
    """The provider key of this process's environment, if `allowed`.

    The operator of the platform pays for requests with it (contract interfaces). Without a key the run falls back on
    the built-in model.
    """
    if not allowed:
        return None
    return os.environ.get(f"{provider_of(name).upper().replace('-', '_')}_API_KEY")


def resolve_model(
    name: str, *, key: str | None = None, base_url: str | None = None, http_client: httpx2.AsyncClient | None = None
) -> Model[Any]:
    """Resolve `name` with `key`, a credential (`llm.credentials`).

    With an address, in the credential or as `base_url`, every provider is spoken to as an OpenAI-compatible server.
    """
    if is_builtin(name):
        return _grounded_model()
    load()
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import check_allow_model_requests, infer_model

    check_allow_model_requests()
    key, address = split_credential(key)
    base_url = base_url or address
    _check(key, base_url)
    provider_name, model_name = split_model(name)
    if not provider_name or not model_name:
        raise ProviderFailed("unknown_model")
    if base_url:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        provider = OpenAICompatibleProvider(provider_name, base_url=base_url, api_key=key, http_client=http_client)
        kind = OpenAIResponsesModel if address and speaks_responses(name) else OpenAIChatModel
        return kind(model_name, provider=provider)
    if provider_of(name) == COMPATIBLE:
        raise ProviderFailed("no_provider_address")
    if key is None and provider_name not in KEYLESS:
        raise ProviderFailed("no_provider_key")
    try:
        return infer_model(name, lambda called: _provider(called, key, http_client))
    except ImportError:
        raise ProviderFailed("provider_not_installed") from None
    except (UserError, ValueError, TypeError):
        raise ProviderFailed("unknown_model") from None


@asynccontextmanager
async def open_model(name: str, *, key: str | None = None, base_url: str | None = None) -> AsyncIterator[Model[Any]]:
    """`resolve_model`, with an HTTP client that lives as long as the run."""
    if is_builtin(name):
        yield _grounded_model()
        return
    await asyncio.to_thread(_load_clients)
    async with (
        _client(split_credential(key)[1]) as client,
        resolve_model(name, key=key, base_url=base_url, http_client=client) as model,
    ):
        yield model


@asynccontextmanager
async def open_embedding_model(name: str, *, key: str | None = None) -> AsyncIterator[EmbeddingModel]:
    """A provider's embedding model such as `openai:text-embedding-3-small`; raises as `resolve_model` does."""
    load()
    from pydantic_ai.embeddings import infer_embedding_model
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import check_allow_model_requests

    check_allow_model_requests()
    key, address = split_credential(key)
    _check(key, address)
    provider_name, model_name = split_model(name)
    if not provider_name or not model_name:
        raise ProviderFailed("unknown_model")
    if not address and key is None and provider_name not in KEYLESS:
        raise ProviderFailed("no_provider_key")
    await asyncio.to_thread(_load_clients)
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    async with _client(address) as client:
        try:
            if address:
                server = OpenAICompatibleProvider(provider_name, base_url=address, api_key=key, http_client=client)
                model: EmbeddingModel = OpenAIEmbeddingModel(model_name, provider=server)
            else:
                model = infer_embedding_model(name, provider_factory=lambda called: _provider(called, key, client))
        except ImportError:
            raise ProviderFailed("provider_not_installed") from None
        except (UserError, ValueError, TypeError):
            raise ProviderFailed("unknown_model") from None
        if isinstance(model, OpenAIEmbeddingModel):
            # As for chat models: the caller decides whether to ask again.
            model._client.max_retries = 0
        yield model


def _grounded_model() -> Model[Any]:
    load()
    from llm.offline.model import grounded_model

    return grounded_model()


def _client(address: str) -> httpx2.AsyncClient:
    """The HTTP client of a run. With an address that a company gave, it connects to that host alone, and to a private
    one only where the operator allows it."""
    if not address:
        return httpx2.AsyncClient(verify=_ssl_context(), timeout=_TIMEOUT)
    return open_client(
        allow_private=is_allowed_private(address),
        max_bytes=_MOST_BYTES,
        step_seconds=_STEP_SECONDS,
        only=address,
        accept_gzip=True,
    )


def _load_clients() -> None:
    """Import the clients, once in a process that uses an outside model.

    This takes half a second, so it happens neither at every start nor in the event loop.
    """
    load()
    import pydantic_ai.embeddings.openai
    import pydantic_ai.models.openai
    import pydantic_ai.providers.openai_compatible  # noqa: F401 (loaded for later)


def _check(key: str | None, base_url: str | None) -> None:
    """Refuse keys and addresses that a header or a URL cannot hold, before a client fails on them."""
    try:
        url = httpx2.URL(base_url or "http://unused")
    except httpx2.InvalidURL:
        raise ProviderFailed("bad_base_url") from None
    if url.scheme not in ("http", "https") or not url.host or not 0 <= (url.port or 0) < 2**16:
        raise ProviderFailed("bad_base_url")
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise ProviderFailed("bad_provider_key")


def _provider(name: str, key: str | None, http_client: httpx2.AsyncClient | None) -> Provider[object]:
    shared = {"http_client": http_client} if http_client is not None and name in _SHARE_HTTP_CLIENT else {}
    from pydantic_ai.providers import infer_provider_class

    build: Any = infer_provider_class(name)
    provider: Provider[Any] = build(api_key=key or "none", **shared)
    return provider


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Cached, because reading the certificate store blocks the event loop for 15 ms."""
    return httpx2.create_ssl_context()
