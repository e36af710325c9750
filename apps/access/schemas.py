"""The shape of a message's signature."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints


class Signed(BaseModel):
    """A member's signature: Ed25519 over `message_signatures.signed_bytes` (contract silas 3). `v`: the format
    of what is signed; one that is not today's proves nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    v: int = 1
    key_id: Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w-]+$")]
    nonce: Annotated[str, StringConstraints(min_length=16, max_length=64, pattern=r"^[\w-]+$")]
    timestamp: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    signature: Annotated[str, StringConstraints(min_length=1, max_length=128)]
