"""The two kinds of model failure: the provider failed, or the output does not fit its schema.

`reason` is a short code that may go into the audit log; text of a provider or model may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import ValidationError

from llm.loading import load

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

_SUMMARY_LENGTH = 1000


class ProviderFailed(Exception):
    """No answer can be had from this model now."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ShapeBroken(Exception):
    """The model's answer does not fit its schema; `summary` says why, for the repair prompt."""

    def __init__(self, summary: str) -> None:
        super().__init__(summary)
        self.summary = summary


@contextmanager
def translate_errors() -> Iterator[None]:
    load()
    from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, UnexpectedModelBehavior, UsageLimitExceeded

    try:
        yield
    except ContentFilterError as error:
        raise ProviderFailed("content_filter") from error
    except UsageLimitExceeded as error:
        raise ProviderFailed("usage_limit") from error
    except UnexpectedModelBehavior as error:
        raise ShapeBroken(summarize(error)) from error
    except ModelAPIError as error:
        raise ProviderFailed(_reason(error)) from error


def _reason(error: ModelAPIError) -> str:
    from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelRequestTimeout, ModelTimeoutError

    match error:
        case ModelRequestTimeout(setting="first_event_timeout"):
            return "first_token_timeout"
        case ModelRequestTimeout():
            return "request_timeout"
        case ModelTimeoutError():
            return "stalled"
        case ModelHTTPError(status_code=status):
            return f"http_{status}"
        case ModelConnectionError():
            return "connection_lost"
        case _:
            return "provider_error"


def summarize(error: BaseException) -> str:
    """Places and messages of the validation error behind `error`; never the values that were refused."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ValidationError):
        cause = cause.__cause__
    if cause is None:
        return str(error)[:_SUMMARY_LENGTH]
    lines = (
        f"{'.'.join(map(str, item['loc'])) or 'output'}: {item['msg']}" for item in cause.errors(include_url=False)
    )
    return "\n".join(lines)[:_SUMMARY_LENGTH]
