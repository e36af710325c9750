"""Price model runs, in decimals rounded up to the nine digits of the ledger, never in floats.

`builtin:` costs nothing, `ollama:` runs on the operator's own hardware; a tenant may set its own `Rates`. An unknown
price is `None`, and the caller refuses the run (contract autonomy, unknown price).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import ROUND_UP, Decimal

from llm.attachments import TOKENS as ATTACHMENT_TOKENS
from llm.briefing import Briefing
from llm.render import render
from llm.runs import Usage

_FREE_PROVIDERS = {"builtin", "ollama"}
_PRICE_LIST = {"openai-chat": "openai", "openai-responses": "openai"}
ZERO = Decimal(0)
_LEDGER_DIGITS = Decimal("0.000000001")
_MILLION = Decimal(1_000_000)
BYTES_PER_TOKEN = 3  # below what tokenizers reach on any prose, so that an estimate errs upwards


@dataclass(frozen=True)
class Rates:
    """A tenant's own price in US dollars per million model tokens. Without prices for the provider's cache, what is
    read from it and written to it costs what any input does."""

    input_per_million: Decimal
    output_per_million: Decimal
    cache_read_per_million: Decimal | None = None
    cache_write_per_million: Decimal | None = None


RATE_FIELDS = tuple(field.name for field in fields(Rates))


def is_free(model_name: str) -> bool:
    """Whether this model costs nothing: it runs here, or on hardware of the operator's own."""
    return model_name.partition(":")[0] in _FREE_PROVIDERS


def price(model_name: str, usage: Usage, *, rates: Rates | None = None) -> Decimal | None:
    """US dollars for the given model tokens, rounded up at the ledger's ninth digit; `None` if the price is unknown."""
    exact = _exact_price(model_name, usage, rates)
    # Rounded up, so that many small calls never sum to less than the bill.
    return None if exact is None else exact.quantize(_LEDGER_DIGITS, rounding=ROUND_UP)


def estimate_usage(briefing: Briefing, *, max_tokens: int = 2000, requests: int = 2) -> Usage:
    """The model tokens of a run on `briefing` with `requests` requests and answers of the maximum length."""
    prompt_bytes = sum(len(text.encode()) for text in render(briefing))
    tool_bytes = sum(len(tool.description) + len(str(tool.parameters)) for tool in briefing.tools)
    files = ATTACHMENT_TOKENS * sum(bool(file.data) for file in briefing.attachments)
    # Each further request sends the answers before it again.
    prompt = estimate_tokens(prompt_bytes + tool_bytes) + files + max_tokens * (requests - 1)
    return Usage(input_tokens=prompt * requests, output_tokens=max_tokens * requests)


def estimate_tokens(size: int) -> int:
    """An upper estimate of the model tokens in `size` bytes of prose."""
    return size // BYTES_PER_TOKEN


def _exact_price(model_name: str, usage: Usage, rates: Rates | None) -> Decimal | None:
    if is_free(model_name):
        return ZERO
    if rates is not None:
        return _by_rates(usage, rates)
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    provider, _, model = model_name.partition(":")
    priced = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return calc_price(priced, model, provider_id=_PRICE_LIST.get(provider, provider)).total_price
    except LookupError:
        return None


def _by_rates(usage: Usage, rates: Rates) -> Decimal:
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    cached_read, cached_write = (
        rates.input_per_million if rate is None else rate
        for rate in (rates.cache_read_per_million, rates.cache_write_per_million)
    )
    # Cached tokens are counted within the input's and have prices of their own.
    plain = max(usage.input_tokens - read - write, 0)
    total = plain * rates.input_per_million + read * cached_read + write * cached_write
    return (total + usage.output_tokens * rates.output_per_million) / _MILLION
