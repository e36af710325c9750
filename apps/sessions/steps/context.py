"""Steps 2 to 5: how far is the message trusted, what was said before, what do we know about it, and what fits?"""

from __future__ import annotations

from apps.memory import queries as knowledge
from apps.sessions.queries import Said
from apps.sessions.state import Stop, TurnState
from kernel.llm.briefing import Utterance
from kernel.taint import Taint
from kernel.tenancy import in_scope

PASSAGES = 6
# Spec 5.13: characters by 3.5; the part of a context window that a conversation's history may fill (spec 11, profiles).
CHARS_PER_TOKEN = 3.5
HISTORY_TOKENS = 6000


async def classify(state: TurnState) -> Stop | None:
    """Step 2. A visitor is `auth` while an identity gate's level stands, else `external`; nobody signs here."""
    state.taint = Taint.AUTH if state.access.subject else Taint.EXTERNAL
    return None


async def remember_message(state: TurnState) -> Stop | None:
    """Steps 3 and 3.5. The message was numbered and kept raw when it was accepted; here it joins the context."""
    state.history = tuple(_utterance(entry) for entry in state.recent)
    return None


async def retrieve(state: TurnState) -> Stop | None:
    """Step 4. One query over the collections that the visitor's level reaches."""
    vector = await knowledge.embed_query(state.text)
    state.passages = await in_scope(
        state.tenant_id, knowledge.search, state.text, vector=vector, levels=state.access.reached_levels(), k=PASSAGES
    )
    return None


async def enforce_budget(state: TurnState) -> Stop | None:
    """Step 5. The oldest messages leave first until the history fits."""
    room = int(HISTORY_TOKENS * CHARS_PER_TOKEN)
    kept: list[Utterance] = []
    for utterance in reversed(state.history):
        room -= len(utterance.text)
        if room < 0:
            break
        kept.append(utterance)
    state.history = tuple(reversed(kept))
    return None


def _utterance(entry: Said) -> Utterance:
    return Utterance(sender=entry.sender, text=entry.text, taint=Taint(entry.taint))
