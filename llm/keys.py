"""Provider keys: a deployment's own, sealed for its provider, or the installation's where that is allowed.

Carried by code that runs outside of any scope. A key is unsealed when it is used, and appears in no repr, row or log.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel.errors import SilasError
from kernel.secrets_key import seal_secret, unseal_secret
from llm.credentials import provider_of
from llm.models import environment_key


@dataclass(frozen=True)
class ProviderKeys:
    """`environment` allows this process's own keys; `sealed` by provider, `owner` says whose they are."""

    environment: bool = False
    sealed: Mapping[str, str] = field(default_factory=dict, repr=False)
    owner: str = ""

    def of(self, model: str) -> str | None:
        """The credential for this model (`llm.credentials`), or None if there is none or it cannot be unsealed for
        this owner."""
        provider = provider_of(model)
        sealed = self.sealed.get(provider)
        if sealed is None:
            return environment_key(model, allowed=self.environment)
        try:
            opened = unseal_secret(b64decode(sealed), belongs_to=seal_context(self.owner, provider))
        except (SilasError, ValueError):
            return None
        return opened.decode()


def seal_key(key: str, *, provider: str, owner: str) -> str:
    """Seal a key for storage; it opens for this owner and provider only."""
    return b64encode(seal_secret(key.encode(), belongs_to=seal_context(owner, provider))).decode()


def seal_context(owner: str, provider: str) -> str:
    """The text that a sealed key is bound to."""
    return f"provider_key:{owner}:{provider}"
