"""Release the model's words to the screen while they stream, as far as the response gates allow.

A piece is released only when everything said so far passes the gates unchanged. A gate that needs more than text (a
script, a model), or may ask for a person, holds the answer back until it is whole; one that only advises sees the whole
answer alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from apps.gates.enums import GateLane, GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates

# All that has been said is judged again each time: not at each word, then, and the longer the answer the more seldom.
# About a line's width at least; an answer of any length is judged over no more than nine times its characters.
_LEAST, _STEP = 60, 1 / 8
_WORD = re.compile(r"\S+\s*|\s+")
# A word with one of these may be a piece of a number, an address or a key.
_GROWING = re.compile(r"[\d@:/_=+-]")


class GatedStream:
    """Releases a growing answer piece by piece, as far as the response gates let it; silent from the first doubt on."""

    def __init__(self, gates: tuple[GateSpec, ...], send: Callable[[str], Awaitable[None]]) -> None:
        ours = tuple(gate for gate in gates if gate.on == GateTrigger.EVERY_AGENT_RESPONSE)
        relevant = tuple(gate for gate in ours if gate.lane == GateLane.POLICY)
        self._gates = relevant
        self._open = all(PROVIDERS[gate.provider].reads_only_text and not gate.may_need_approval for gate in relevant)
        # The event loop does not wait for another program.
        self._waits = any(PROVIDERS[gate.provider].is_slow for gate in relevant)
        self._send = send
        self._said = ""
        self._released = 0
        self._next = 0.0

    async def piece(self, text: str) -> None:
        self._said += text
        if not self._open or not self._is_due():
            return
        self._next = len(self._said) + max(_LEAST, len(self._said) * _STEP)
        ready = settled(self._said)
        if len(ready) <= self._released:
            return
        # Judged as a whole each time: a pattern may begin in one piece and end in the next.
        if not (await asyncio.to_thread(self._passes, ready) if self._waits else self._passes(ready)):
            self._open = False
            return
        piece, self._released = ready[self._released :], len(ready)
        await self._send(piece)

    def _is_due(self) -> bool:
        """True for the first words at once, and for the rest in pieces of readable size."""
        beginning = not self._released and len(self._said) < _LEAST
        return beginning or len(self._said) >= self._next

    def _passes(self, text: str) -> bool:
        report = check_gates(self._gates, GateTrigger.EVERY_AGENT_RESPONSE, {"response": text})
        untouched = report.context.get("response", text) == text
        return report.blocked is None and report.needs_approval is None and untouched


def settled(text: str) -> str:
    """`text` without its end that may still grow: an unfinished word, or words that are becoming a number, an address
    or a key. Linear in the length of the text."""
    words = _WORD.findall(text)
    unfinished = bool(words) and not words[-1][-1].isspace()
    kept = len(words)
    while kept and _GROWING.search(words[kept - 1]):
        kept -= 1
    return "".join(words[: kept - (unfinished and kept == len(words))])
