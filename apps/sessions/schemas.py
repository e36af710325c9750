"""Frozen shapes that travel between a visitor and the platform (contract interfaces, widget socket)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from apps.access.schemas import Signed

MAX_FRAME_BYTES = 16 * 1024
# The close code of a socket that sends what is not allowed, or too much of it (contract interfaces).
POLICY_VIOLATION = 4008
MAX_TEXT = 4000
MAX_WORDS = 2000
MAX_CLIENT_ID = 64
STORABLE = r"^[^\x00]*$"  # PostgreSQL keeps no NUL


@dataclass(frozen=True)
class StartedSession:
    """Answer of the session endpoint. `token` lives `expires_in` seconds; `resume_token` is given once per session."""

    session_id: UUID
    token: str
    resume_token: str
    expires_in: int
    resumed: bool


@dataclass(frozen=True)
class Accepted:
    """A visitor's message is committed under `seq`; `repeated` when its `client_id` was already stored."""

    seq: int
    repeated: bool


@dataclass(frozen=True)
class Busy:
    """Nothing was stored: too many messages wait. Try again after `retry_after` seconds; `said` tells the visitor."""

    retry_after: int
    said: str


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AuthFrame(_Frame):
    type: Literal["auth"]
    token: str
    after_seq: Annotated[int, Field(ge=0)] = 0


class MessageFrame(_Frame):
    """`proactive_message`: the one that the visitor was shown and answers."""

    type: Literal["message"]
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT, pattern=STORABLE)]
    client_id: Annotated[str, StringConstraints(max_length=MAX_CLIENT_ID, pattern=r"^[\w.:-]*$")] = ""
    signed: Signed | None = None
    proactive_message: UUID | None = None


class TypingFrame(_Frame):
    type: Literal["typing"]


class ReadFrame(_Frame):
    type: Literal["read"]
    seq: Annotated[int, Field(ge=0)] = 0


class DecisionFrame(_Frame):
    """What the visitor chose of a card's answers, or their own words where it takes them."""

    type: Literal["decision_response"]
    request_id: UUID
    selected_value: Annotated[str, StringConstraints(max_length=60)] = ""
    freetext: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_WORDS, pattern=STORABLE)] = ""


VisitorFrame = Annotated[
    AuthFrame | MessageFrame | TypingFrame | ReadFrame | DecisionFrame, Field(discriminator="type")
]
VISITOR_FRAME: TypeAdapter[VisitorFrame] = TypeAdapter(VisitorFrame)
VISITOR_TYPES = frozenset({"auth", "message", "typing", "read", "decision_response"})


def client_id_of(raw: Mapping[str, Any]) -> dict[str, str]:
    """The client's own id of a frame that was refused, so that it knows which one; nothing when there is none."""
    given = raw.get("client_id")
    return {"client_id": given} if isinstance(given, str) and 0 < len(given) <= MAX_CLIENT_ID else {}
