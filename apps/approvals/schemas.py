"""Types that the shapes of this room share: frozen models, UTC datetimes, hashes, signatures (contract silas 0, 8)."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)


def _to_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _from_base64(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def from_base64(text: str) -> bytes:
    """Decode base64. Anything that cannot be decoded becomes no bytes, which no signature check accepts."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
Signature = Annotated[bytes, BeforeValidator(_from_base64), PlainSerializer(to_base64, when_used="json")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)
