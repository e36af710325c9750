"""Check that a model answers with a key, by one tiny request. The content of the answer does not matter."""

from __future__ import annotations

import asyncio

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from llm.failures import ProviderFailed, translate_errors
from llm.models import open_model

SECONDS = 20.0


async def check_model(name: str, *, key: str | None) -> None:
    """Raises `ProviderFailed`. A truncated answer counts as an answer."""
    settings = ModelSettings(max_tokens=16, max_retries=0, timeout=SECONDS)
    try:
        async with asyncio.timeout(SECONDS), open_model(name, key=key) as model:
            with translate_errors():
                await _request(model, settings)
    except TimeoutError:
        raise ProviderFailed("request_timeout") from None


async def _request(model: object, settings: ModelSettings) -> None:
    request = ModelRequest.user_text_prompt("Answer with the word yes.")
    try:
        await model_request(model, [request], model_settings=settings)  # type: ignore[arg-type]  # any Model
    except UnexpectedModelBehavior:
        return
