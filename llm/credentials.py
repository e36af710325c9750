"""The credential of a model provider: its key, preceded by the server's address where the company gives one.

Both are sealed as one text, so that a key is never sent to another address than the one it was given for.
"""

from __future__ import annotations

# Providers whose server's address the company gives; `compatible` is any OpenAI-compatible server.
COMPATIBLE = "compatible"
ADDRESSED = frozenset({COMPATIBLE, "azure", "ollama"})
_APIS = ("-chat", "-responses")


def split_model(name: str) -> tuple[str | None, str]:
    """Split `provider:model`; the provider of a name without one is None, as in pydantic-ai."""
    provider, colon, model = name.partition(":")
    return (provider, model) if colon else (None, name)


def provider_of(model: str) -> str:
    """The provider under which a model's credential is stored: `openai-chat:x` and `openai:x` share one."""
    provider = split_model(model)[0] or ""
    for api in _APIS:
        provider = provider.removesuffix(api)
    return provider


def is_addressed(model: str) -> bool:
    """Whether the model's server has an address that is given with its key."""
    return provider_of(model) in ADDRESSED


def speaks_responses(model: str) -> bool:
    """Whether a server whose address is given is asked through the Responses API instead of chat completions."""
    return (split_model(model)[0] or "").endswith("-responses")


def join_credential(key: str, address: str = "") -> str:
    """The credential in one text; keys and addresses contain no space."""
    return f"{address} {key}" if address else key


def split_credential(credential: str | None) -> tuple[str | None, str]:
    """The key, or None, and the address, or ""."""
    if credential is None or not credential.startswith(("http://", "https://")):
        return credential, ""
    address, _, key = credential.partition(" ")
    return key or None, address
