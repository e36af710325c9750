"""Check that a model answers, by one tiny request, and list the models of a server."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx2

from kernel.http.allowed import is_allowed_private
from kernel.http.client import open_client
from llm.credentials import provider_of, split_credential
from llm.failures import ProviderFailed, translate_errors
from llm.loading import load
from llm.models import open_model
from llm.runs import Usage

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

SECONDS = 20.0
MOST_MODELS = 200
_MOST_BYTES = 2_000_000
# The base URLs of providers whose API lists their models.
_BASE_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com",
}
_ANTHROPIC_VERSION = "2023-06-01"


async def check_model(name: str, *, key: str | None) -> Usage | None:
    """Return what the request used, or None if that is unknown. The content of the answer does not matter, and a
    truncated one counts. `key` is a credential (`llm.credentials`). Raises `ProviderFailed`."""
    load()
    from pydantic_ai.settings import ModelSettings

    settings = ModelSettings(max_tokens=16, max_retries=0, timeout=SECONDS)
    try:
        async with asyncio.timeout(SECONDS), open_model(name, key=key) as model:
            with translate_errors():
                return await _request(model, settings)
    except TimeoutError:
        raise ProviderFailed("request_timeout") from None


async def list_models(provider: str, *, key: str | None) -> list[str]:
    """Return the names of the models that the provider's server offers, sorted; empty where it lists none.

    `key` is a credential (`llm.credentials`). Raises `ProviderFailed`.
    """
    load()
    from pydantic_ai.models import check_allow_model_requests

    check_allow_model_requests()
    secret, address = split_credential(key)
    base = address or _BASE_URLS.get(provider_of(f"{provider}:any"), "")
    if not base:
        return []
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    if provider == "anthropic":
        headers = {"x-api-key": secret or "", "anthropic-version": _ANTHROPIC_VERSION}
    client = open_client(
        allow_private=is_allowed_private(base),
        max_bytes=_MOST_BYTES,
        step_seconds=SECONDS,
        headers=headers,
        # The key goes with the request: it is sent to no other host.
        only=base,
        accept_gzip=True,
    )
    try:
        async with asyncio.timeout(SECONDS), client:
            answer = await client.get(f"{base.rstrip('/')}/models")
            answer.raise_for_status()
            listed: object = json.loads(answer.content)
    except TimeoutError:
        raise ProviderFailed("request_timeout") from None
    except httpx2.HTTPStatusError as error:
        raise ProviderFailed(f"http_{error.response.status_code}") from None
    except httpx2.HTTPError:
        raise ProviderFailed("connection_lost") from None
    except ValueError:
        raise ProviderFailed("answer_unreadable") from None
    rows = listed.get("data") if isinstance(listed, dict) else None
    names = {row.get("id") for row in rows if isinstance(row, dict)} if isinstance(rows, list) else set()
    # The list is a server's word and is shown in a form.
    plain = (name for name in names if isinstance(name, str) and 0 < len(name) <= 120 and name.isprintable())
    return sorted(plain)[:MOST_MODELS]


async def _request(model: Any, settings: ModelSettings) -> Usage | None:
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import UnexpectedModelBehavior
    from pydantic_ai.messages import ModelRequest

    request = ModelRequest.user_text_prompt("Answer with the word yes.")
    try:
        answer = await model_request(model, [request], model_settings=settings)
    except UnexpectedModelBehavior:
        return None
    spent = answer.usage
    if not spent.input_tokens and not spent.output_tokens:
        return None
    return Usage(spent.input_tokens, spent.output_tokens, 1)
