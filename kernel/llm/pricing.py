"""What does a model run cost? Decimals with all their digits, up to the nine that the ledger keeps, never floats.

`builtin:` costs nothing, `ollama:` runs on the operator's own hardware; a tenant may state its own `Rates`. A price
nobody knows is `None`, and the caller refuses the run (contract autonomy, unknown price).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from kernel.llm.briefing import Briefing
from kernel.llm.render import render

_FREE_PROVIDERS = {"builtin", "ollama"}
_PRICE_LIST = {"openai-chat": "openai", "openai-responses": "openai"}
ZERO = Decimal(0)
_LEDGER_DIGITS = Decimal("0.000000001")
_MILLION = Decimal(1_000_000)
_BYTES_PER_TOKEN = 3  # below what tokenizers reach on any prose, so that an estimate errs upwards


@dataclass(frozen=True)
class Rates:
    """A tenant's own price in US dollars per million model tokens."""

    input_per_million: Decimal
    output_per_million: Decimal


def price(model_name: str, *, input_tokens: int, output_tokens: int, rates: Rates | None = None) -> Decimal | None:
    """US dollars for the given model tokens, rounded up at the ledger's ninth digit; `None` when nobody knows."""
    exact = _exact(model_name, input_tokens, output_tokens, rates)
    return None if exact is None else exact.quantize(_LEDGER_DIGITS, rounding=ROUND_UP)


def estimate(
    model_name: str, briefing: Briefing, *, max_tokens: int = 2000, requests: int = 2, rates: Rates | None = None
) -> Decimal | None:
    """What a run on `briefing` may cost when it asks the model `requests` times and each answer is as long as
    allowed.
    """
    said = sum(len(text.encode()) for text in render(briefing))
    offered = sum(len(tool.description) + len(str(tool.parameters)) for tool in briefing.tools)
    prompt = (said + offered) // _BYTES_PER_TOKEN + max_tokens * (requests - 1)
    return price(model_name, input_tokens=prompt * requests, output_tokens=max_tokens * requests, rates=rates)


def _exact(model_name: str, input_tokens: int, output_tokens: int, rates: Rates | None) -> Decimal | None:
    provider, _, model = model_name.partition(":")
    if rates is not None:
        return (input_tokens * rates.input_per_million + output_tokens * rates.output_per_million) / _MILLION
    if provider in _FREE_PROVIDERS:
        return Decimal(0)
    usage = PricedUsage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        return calc_price(usage, model, provider_id=_PRICE_LIST.get(provider, provider)).total_price
    except LookupError:
        return None
