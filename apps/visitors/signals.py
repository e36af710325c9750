"""Events of the visitors room, raised inside the transaction that changed the conversation."""

from __future__ import annotations

from apps.access.signed_identity import Identity
from apps.visitors.models import Rating
from kernel.events import Event

# (identity): a token was believed and its gate passed; what it says is the company's own word.
identity_signed: Event[[Identity]] = Event("identity_signed")
# (rating): a visitor gave or changed it.
conversation_rated: Event[[Rating]] = Event("conversation_rated")
